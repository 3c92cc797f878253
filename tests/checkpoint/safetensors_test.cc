#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace octet::checkpoint {
namespace {

NamedTensors example() {
  return {{"a", ir::Tensor::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4})},
          {"empty", ir::Tensor::of<float>({0}, std::vector<float>{})},
          {"step", ir::Tensor::scalar<int64_t>(7)}};
}

TEST(Safetensors, RoundTrip) {
  const NamedTensors read = parse_safetensors(safetensors_bytes(example(), {{"stage", "float"}}), "x");
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read.at("a").to_floats(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(read.at("a").shape(), (ir::Shape{2, 2}));
  EXPECT_EQ(read.at("step").to_ints(), std::vector<int64_t>{7});
}

// The layout that the Python package documents: length, JSON, data.
TEST(Safetensors, HeaderIsAsSpecified) {
  const std::string bytes = safetensors_bytes({{"a", ir::Tensor::of<float>({1}, std::vector<float>{1})}});
  EXPECT_EQ(bytes.substr(8, 2), "{\"");
  EXPECT_NE(bytes.find(R"("data_offsets":[0,4],"dtype":"F32","shape":[1])"), std::string::npos);
  EXPECT_EQ(bytes.size() % 8, 4u);
}

TEST(Safetensors, EveryTruncationIsAUserError) {
  const std::string whole = safetensors_bytes(example());
  for (size_t n = 0; n < whole.size(); n++) EXPECT_THROW(parse_safetensors(whole.substr(0, n), "x"), UserError) << n;
}

TEST(Safetensors, DamageNeverCrashes) {
  const std::string whole = safetensors_bytes(example());
  for (size_t i = 0; i < whole.size(); i++)
    for (int bit = 0; bit < 8; bit++) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      try {
        parse_safetensors(damaged, "x");
      } catch (const UserError&) {
      }
    }
  SUCCEED();
}

}  // namespace
}  // namespace octet::checkpoint
