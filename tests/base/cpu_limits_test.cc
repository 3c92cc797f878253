#include "base/cpu_limits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <thread>

namespace octet {
namespace {

class CgroupQuota : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(mount_); }
  void TearDown() override { std::filesystem::remove_all(mount_); }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((mount_ / name).parent_path());
    std::ofstream(mount_ / name) << text;
  }
  const std::filesystem::path mount_ =
      std::filesystem::path(::testing::TempDir()) /
      (std::string("octet_cgroup_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(CgroupQuota, NoneWhereNothingLimits) {
  EXPECT_TRUE(std::isinf(cgroup_cpu_quota("", mount_)));
  write("cpu.max", "max 100000\n");
  EXPECT_TRUE(std::isinf(cgroup_cpu_quota("0::/\n", mount_)));
  EXPECT_TRUE(std::isinf(cgroup_cpu_quota("nonsense\n", mount_)));
}

TEST_F(CgroupQuota, SmallestOfTheGroupAndThoseAboveIt) {
  write("cpu.max", "max 100000\n");
  write("a/cpu.max", "150000 100000\n");
  write("a/b/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("0::/a/b\n", mount_), 1.5);
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("0::/a/b/not/there\n", mount_), 1.5);
  EXPECT_TRUE(std::isinf(cgroup_cpu_quota("0::/elsewhere\n", mount_)));
  write("cpu.max", "50000 100000\n");  // what a container sees of its own group
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("0::/elsewhere\n", mount_), 0.5);
}

TEST_F(CgroupQuota, VersionOne) {
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  write("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("5:cpuset:/job\n4:cpu,cpuacct:/job\n0::/job\n", mount_), 3);
  EXPECT_TRUE(std::isinf(cgroup_cpu_quota("4:cpuacct,cpuset:/job\n", mount_)));
}

TEST(CpuLimits, AvailableWithinAllowed) {
  EXPECT_GE(available_cpus(), 1);
  ASSERT_FALSE(allowed_cpus().empty());
  EXPECT_LE(available_cpus(), static_cast<int>(allowed_cpus().size()));
}

TEST(CpuLimits, APinnedThreadSeesOneCpu) {
  const std::vector<int> cpus = allowed_cpus();
  std::thread([&] {
    ASSERT_TRUE(pin_this_thread(cpus.back()));
    EXPECT_EQ(allowed_cpus(), std::vector<int>{cpus.back()});
    EXPECT_EQ(available_cpus(), 1);
    EXPECT_FALSE(pin_this_thread(-1));
    EXPECT_FALSE(pin_this_thread(1 << 20));
    EXPECT_FALSE(allow_this_thread({}));
    EXPECT_FALSE(allow_this_thread({cpus.back(), -1}));
    EXPECT_EQ(allowed_cpus(), std::vector<int>{cpus.back()});
    ASSERT_TRUE(allow_this_thread(cpus));
    EXPECT_EQ(allowed_cpus(), cpus);
  }).join();
  EXPECT_EQ(allowed_cpus(), cpus);
}

}  // namespace
}  // namespace octet
