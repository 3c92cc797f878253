// What is low, and that the kernels of the executor agree with it.
#include "train/precision.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "train/ops_fused.h"

namespace octet::train {
namespace {

TEST(Precision, LowTypesHaveFewerDigitsThanFloat32) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) EXPECT_TRUE(is_low(type)) << at::toString(type);
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kInt, at::kLong, at::kBool})
    EXPECT_FALSE(is_low(type)) << at::toString(type);
}

TEST(Precision, MastersAreNeverLow) {
  for (const Precision p : {Precision::kFloat32, Precision::kBFloat16, Precision::kFloat64})
    EXPECT_FALSE(is_low(master_type(p))) << precision_name(p);
  EXPECT_TRUE(is_low(compute_type(Precision::kBFloat16)));
  EXPECT_EQ(compute_type(Precision::kFloat32), master_type(Precision::kFloat32));
  EXPECT_EQ(compute_type(Precision::kFloat64), master_type(Precision::kFloat64));
}

// The reason why float16 carries no codes: the sum of eight products of codes is no longer finite.
TEST(Precision, CodesFlowWhereTheirProductsFit) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor codes = at::full({8}, 127, type);
    const bool fits = at::dot(codes.to(at::kFloat), codes.to(at::kFloat)).to(type).isfinite().item<bool>();
    EXPECT_EQ(flows_as_codes(type), fits) << at::toString(type);
  }
  EXPECT_FALSE(flows_as_codes(at::kFloat)) << "float32 rounds nothing off the grid";
}

// Any other type would be read as one of these.
TEST(Precision, PointwiseKernelsAreOfFloat32AndBfloat16) {
  EXPECT_TRUE(has_pointwise(at::kCPU, at::kFloat));
  EXPECT_TRUE(has_pointwise(at::kCPU, at::kBFloat16));
  EXPECT_FALSE(has_pointwise(at::kCPU, at::kHalf));
  EXPECT_FALSE(has_pointwise(at::kCPU, at::kDouble));
  EXPECT_FALSE(has_pointwise(at::kCUDA, at::kFloat));
}

}  // namespace
}  // namespace octet::train
