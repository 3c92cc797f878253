// What is said where no GPU can be used: the reason, and what to do about it.
#include "train/cuda_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octet::train {
namespace {

using ::testing::HasSubstr;

TEST(CudaDriver, NamesTheReason) {
  EXPECT_EQ(cuda_driver_problem(0, 1, nullptr, ""), "");
  EXPECT_THAT(cuda_driver_problem(100, 0, nullptr, ""), HasSubstr("it finds no GPU"));
  EXPECT_THAT(cuda_driver_problem(0, 0, nullptr, ""), HasSubstr("it finds no GPU"));
  EXPECT_THAT(cuda_driver_problem(100, 0, "", ""), HasSubstr("CUDA_VISIBLE_DEVICES= shows none"));
  EXPECT_THAT(cuda_driver_problem(100, 0, "7", ""), HasSubstr("CUDA_VISIBLE_DEVICES=7 shows none"));
  EXPECT_THAT(cuda_driver_problem(803, 0, nullptr, ""), HasSubstr("restart the machine"));
  EXPECT_THAT(cuda_driver_problem(804, 0, nullptr, ""), HasSubstr("too old"));
  EXPECT_THAT(cuda_driver_problem(999, 0, nullptr, "unknown error"), HasSubstr("unknown error (error 999)"));
}

TEST(CudaDriver, ExplainsWhatTheRuntimeSays) {
  EXPECT_THAT(cuda_device_problem("CUDA error: all CUDA-capable devices are busy or unavailable\nCUDA kernel errors"),
              HasSubstr("unavailable; another process has it for itself"));
  EXPECT_THAT(cuda_device_problem("CUDA error: out of memory\nmore"),
              HasSubstr("other processes have taken its memory"));
  EXPECT_EQ(cuda_device_problem("something else\nbacktrace"), "something else");
}

}  // namespace
}  // namespace octet::train
