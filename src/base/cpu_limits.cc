#include "base/cpu_limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <thread>

#include "base/worker_process.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr int kMaxCpus = 8192;  // of the largest Linux kernels

// A CPU set of any size: cpu_set_t ends at 1024.
struct CpuSet {
  CpuSet() : set(CPU_ALLOC(kMaxCpus)), bytes(CPU_ALLOC_SIZE(kMaxCpus)) { CPU_ZERO_S(bytes, set); }
  ~CpuSet() { CPU_FREE(set); }
  CpuSet(const CpuSet&) = delete;
  CpuSet& operator=(const CpuSet&) = delete;
  cpu_set_t* set;
  size_t bytes;
};

// "QUOTA PERIOD" or "max PERIOD".
double quota_v2(const fs::path& group) {
  std::ifstream in(group / "cpu.max");
  double quota = 0, period = 0;
  return in >> quota >> period && quota > 0 && period > 0 ? quota / period : kUnlimited;
}

double quota_v1(const fs::path& group) {
  std::ifstream quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
  double quota = -1, period = 0;
  return quota_file >> quota && period_file >> period && quota > 0 && period > 0 ? quota / period : kUnlimited;
}

// The smallest quota from `group` up to the mount. Inside a container the group's path may be that of the host, which
// is not there; the mount then shows the container's own group.
template <typename Quota>
double smallest_on_the_way(const fs::path& mount, fs::path group, Quota quota) {
  double smallest = quota(mount);
  for (group = group.relative_path(); !group.empty(); group = group.parent_path())
    smallest = std::min(smallest, quota(mount / group));
  return smallest;
}

bool names_cpu(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');)
    if (name == "cpu") return true;
  return false;
}

}  // namespace

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  const CpuSet mask;
  if (::sched_getaffinity(0, mask.bytes, mask.set) != 0) return cpus;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu)
    if (CPU_ISSET_S(cpu, mask.bytes, mask.set)) cpus.push_back(cpu);
  return cpus;
}

double cgroup_cpu_quota(const std::string& membership, const fs::path& mount) {
  double smallest = kUnlimited;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // ID:CONTROLLERS:PATH, no controllers in version 2
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) smallest = std::min(smallest, smallest_on_the_way(mount, group, quota_v2));
    if (!names_cpu(controllers)) continue;
    for (const std::string& folder : {controllers, std::string("cpu")})
      smallest = std::min(smallest, smallest_on_the_way(mount / folder, group, quota_v1));
  }
  return smallest;
}

namespace {

int sharing_processes = 1;

int cpus_of_all() {
  const size_t allowed = allowed_cpus().size();
  const int cpus = std::max(1, static_cast<int>(allowed > 0 ? allowed : std::thread::hardware_concurrency()));
  std::ifstream in("/proc/self/cgroup");
  std::ostringstream membership;
  membership << in.rdbuf();
  const double quota = cgroup_cpu_quota(membership.str(), "/sys/fs/cgroup");
  return quota < cpus ? std::max(1, static_cast<int>(std::floor(quota))) : cpus;
}

}  // namespace

int available_cpus() {
  return std::max(1, cpus_of_all() / sharing_processes);
}

void share_cpus(int processes) {
  sharing_processes = std::max(1, processes);
}

bool pin_this_thread(int cpu) {
  return allow_this_thread({cpu});
}

bool allow_this_thread(const std::vector<int>& cpus) {
  const CpuSet allowed;
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= kMaxCpus) return false;
    CPU_SET_S(cpu, allowed.bytes, allowed.set);
  }
  return ::sched_setaffinity(0, allowed.bytes, allowed.set) == 0;
}

int64_t second_level_cache_bytes() {
  constexpr int64_t kSmallest = 256 * 1024;
#ifdef _SC_LEVEL2_CACHE_SIZE
  return std::max<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE), kSmallest);
#else
  return kSmallest;
#endif
}

}  // namespace octet
