// Engines whose file is written over or cut off while they run, as `cp new.octet model.octet` does.
#include "engine/file_constants.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "engine/conv_chain_plan.h"
#include "engine/engine_file.h"
#include "engine/engine_test_util.h"

namespace octet::testing {
namespace {

using ::testing::HasSubstr;

class FileConstants : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(::testing::TempDir()) / ("octet_file_constants_" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // Other bytes in the same file, as many as before or none.
  void write_over(bool cut_off) const {
    const auto size = std::filesystem::file_size(path_);
    const int file = ::open(path_.c_str(), O_WRONLY | O_TRUNC);
    ASSERT_GE(file, 0);
    const std::string other(size, '\x55');
    if (!cut_off) {
      EXPECT_EQ(::write(file, other.data(), other.size()), static_cast<ssize_t>(other.size()));
    }
    timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};  // clocks of files tick slowly
    EXPECT_EQ(::futimens(file, times), 0);
    ::close(file);
  }
  static std::vector<float> run_again(engine::Executor& executor, const engine::Plan& plan) {
    std::vector<float> in(plan.buffers[plan.inputs[0]].elements()), out(plan.buffers[plan.outputs[0]].elements());
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 17) * 0.1f - 0.8f;
    const std::vector<const float*> inputs{in.data()};
    const std::vector<float*> outputs{out.data()};
    executor.run(inputs.data(), outputs.data());
    return out;
  }

  std::filesystem::path path_;
};

// Large and small weights, of one pixel and of nine, in every kernel that this machine has.
TEST_F(FileConstants, ARunningEngineDoesNotDependOnItsFile) {
  for (const bool cut_off : {false, true})
    for (const char* const tactic :
         {"", "words avx2", "bytes avx2", "winograd avx2", "winograd avx512_vnni", "row_winograd avx512_vnni",
          "lean_winograd avx512_vnni", "register_winograd avx512_vnni", "image_winograd avx512_vnni",
          "packed_pixels avx512_vnni", "sliced amx_int8", "folded amx_int8"})
      for (const Isa isa : supported_isas()) {
        if (*tactic && !std::string(tactic).ends_with(isa_name(isa))) continue;
        // Images of 7 and 14 pixels a side, for which some kernels are made.
        engine::save_engine(ConvChain(64, 14, tactic)
                                .conv(64, 3, 1)
                                .depthwise(3)
                                .conv(256, 1, 1)
                                .conv(256, 3, 2)
                                .conv(256, 3, 1)
                                .conv(128, 1, 1)
                                .finish(),
                            path_);
        const auto plan = engine::load_engine(path_);
        engine::Executor executor(plan, {.threads = 2, .isa = isa});
        const std::vector<float> before = run_again(executor, *plan);
        write_over(cut_off);
        EXPECT_TRUE(run_again(executor, *plan) == before)
            << tactic << " on " << isa_name(isa) << (cut_off ? ", cut off" : "");
        if (HasFailure() && cut_off) return;
      }
}

TEST_F(FileConstants, WhatIsReadInPlaceIsCopied) {
  engine::save_engine(small_plan(), path_);
  const auto plan = engine::load_engine(path_);
  const std::vector<float> before = run(plan);
  write_over(/*cut_off=*/true);
  EXPECT_EQ(run(plan), before);
}

TEST_F(FileConstants, AFileThatChangedBeforeTheFirstContextIsRefused) {
  for (const bool cut_off : {false, true}) {
    engine::save_engine(ConvChain(64, 8).conv(256, 3, 1).finish(), path_);
    const auto plan = engine::load_engine(path_);
    write_over(cut_off);
    EXPECT_THAT(error_of([&] { run(plan); }), HasSubstr("was changed while it was in use"));
  }
}

TEST_F(FileConstants, AFileThatIsReplacedByARenameGoesOn) {
  engine::save_engine(ConvChain(64, 8).conv(256, 3, 1).finish(), path_);
  const auto plan = engine::load_engine(path_);
  engine::save_engine(small_plan(), path_);
  EXPECT_EQ(run(plan).size(), static_cast<size_t>(plan->buffers[plan->outputs[0]].elements()));
}

TEST_F(FileConstants, ItIsTheSameBytes) {
  const engine::Plan made = ConvChain(64, 8).conv(256, 3, 1).conv(16, 1, 1).conv(512, 3, 1).finish();
  engine::save_engine(made, path_);
  const auto plan = engine::load_engine(path_);
  ASSERT_EQ(plan->constants->bytes().size(), made.constants->bytes().size());
  EXPECT_TRUE(
      std::equal(made.constants->bytes().begin(), made.constants->bytes().end(), plan->constants->bytes().begin()));
}

}  // namespace
}  // namespace octet::testing
