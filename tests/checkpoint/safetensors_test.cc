#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

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
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_THROW(parse_safetensors(whole.substr(0, n), "x"), UserError) << n;
}

TEST(Safetensors, DamageNeverCrashes) {
  const std::string whole = safetensors_bytes(example());
  for (size_t i = 0; i < whole.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      try {
        parse_safetensors(damaged, "x");
      } catch (const UserError&) {
      }
    }
  SUCCEED();
}

std::string with_header(std::string header, const std::string& data) {
  std::string out(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(out.data(), &length, 8);
  return out + header + data;
}

std::string entry(const std::string& name, const std::string& shape, const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(Safetensors, HeadersThatDoNotFitTheDataAreRefused) {
  const std::string data(16, 'x');
  const auto read = [&](const std::string& entries) {
    return parse_safetensors(with_header("{" + entries + "}", data), "x");
  };
  EXPECT_EQ(read(entry("a", "[2]", "[0,8]") + "," + entry("b", "[1,2]", "[8,16]")).size(), 2u);
  for (const std::string& entries :
       {entry("a", "[2]", "[0,8]") + "," + entry("b", "[2]", "[0,8]"),    // both at one place, the rest nobody's
        entry("a", "[3]", "[0,12]") + "," + entry("b", "[2]", "[8,16]"),  // overlap
        entry("a", "[2]", "[0,8]") + "," + entry("b", "[1]", "[12,16]"),  // gap
        entry("a", "[2]", "[0,8]"),                                       // bytes behind the last
        entry("a", "[4]", "[4,20]"), entry("a", "[4]", "[16,0]"), entry("a", "[4.0]", "[0,16]"),
        entry("a", "[4]", "[0,16.5]"), entry("a", "[-4]", "[0,16]"), entry("a", "[4]", "[0,16,16]"),
        entry("a", "[0,4611686018427387904,4]", "[0,0]") + "," + entry("b", "[4]", "[0,16]"),
        entry("a", "[2147483648,2147483648,4]", "[0,16]"), entry("a", "[18446744073709551615]", "[0,16]"),
        entry("a", "{\"0\":4}", "[0,16]"), entry("a", "4", "[0,16]"), std::string(R"("a":[4])")})
    EXPECT_THROW(read(entries), UserError) << entries;
}

}  // namespace
}  // namespace octet::checkpoint
