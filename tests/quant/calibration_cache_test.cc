#include "quant/calibration_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <utility>
#include <vector>

#include "base/error.h"

namespace octet::quant {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

std::string error_of(const std::string& text) {
  try {
    parse_calibration_cache(text, "cal.bin");
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(CalibrationCache, TheBytesThatTaoWrites) {
  CalibrationCache cache;
  cache.version = "8501";
  cache.scales = {{"output_cov/Sigmoid:0", std::bit_cast<float>(0x3c010a14u)}, {"input_1", 6.0f / 127}, {"zero", 0.0f}};
  EXPECT_EQ(calibration_cache_text(cache),
            "TRT-8501-EntropyCalibration2\n"
            "input_1: 3d418306\n"
            "output_cov/Sigmoid:0: 3c010a14\n"
            "zero: 0\n");
}

// The digits of NVIDIA's sample cache: 3c010a14 is 0.00787594.
TEST(CalibrationCache, ReadsWhatTensorRtWrites) {
  const CalibrationCache cache = parse_calibration_cache(
      "TRT-7000-EntropyCalibration2\r\n"
      "data: 3c010a14\r\n"
      "(Unnamed Layer* 3) [Constant]_output: 3c009976\n"
      "\n"
      "a:b : 0\n",
      "cal.bin");
  EXPECT_EQ(cache.version, "7000");
  EXPECT_EQ(cache.algorithm, "EntropyCalibration2");
  EXPECT_THAT(cache.scales,
              UnorderedElementsAre(Pair("data", std::bit_cast<float>(0x3c010a14u)),
                                   Pair("(Unnamed Layer* 3) [Constant]_output", std::bit_cast<float>(0x3c009976u)),
                                   Pair("a:b", 0.0f)));
  EXPECT_NEAR(cache.scales.at("data"), 0.00787594, 1e-8);
}

TEST(CalibrationCache, EarlyTaoVersionsWriteABareOne) {
  const CalibrationCache cache = parse_calibration_cache("1\nx: 3d418306\n", "cal.bin");
  EXPECT_EQ(cache.version, "");
  EXPECT_EQ(calibration_cache_text(cache), "1\nx: 3d418306\n");
}

TEST(CalibrationCache, RoundTripsEveryScale) {
  std::mt19937 random(5);
  CalibrationCache cache;
  for (int i = 0; i < 2000; ++i)
    cache.scales["t" + std::to_string(i)] = std::bit_cast<float>(static_cast<uint32_t>(random() % 0x7f800000u));
  const CalibrationCache again = parse_calibration_cache(calibration_cache_text(cache), "cal.bin");
  EXPECT_EQ(again.scales, cache.scales);
  EXPECT_EQ(calibration_cache_text(again), calibration_cache_text(cache));
}

TEST(CalibrationCache, RefusesWhatIsNone) {
  const std::string head = "TRT-8601-EntropyCalibration2\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "cal.bin: is empty"},
      {"TRT-8601\nx: 0\n", "cal.bin:1: is no calibration cache"},
      {"TRT-x-Entropy\n", "cal.bin:1: is no calibration cache"},
      {"TRT--Entropy\n", "cal.bin:1: is no calibration cache"},
      {std::string("\0\1\2", 3), "cal.bin:1: is no calibration cache"},
      {head + "x 3d418306\n", "cal.bin:2: 'x 3d418306' is no line"},
      {head + ": 3d418306\n", "cal.bin:2: ': 3d418306' is no line"},
      {head + "x: 3d41830g\n", "cal.bin:2: '3d41830g' is no scale"},
      {head + "x: 3d4183061\n", "cal.bin:2: '3d4183061' is no scale"},
      {head + "x: 0x3d4183\n", "cal.bin:2: '0x3d4183' is no scale"},
      {head + "x:\n", "cal.bin:2: '' is no scale"},
      {head + "x: 7f800000\n", "cal.bin:2: the scale 7f800000 is inf"},
      {head + "x: 7fc00000\n", "cal.bin:2: the scale 7fc00000 is nan"},
      {head + "x: bd418306\n", "cal.bin:2: the scale bd418306 is -0.047"},
      {head + "x: 0\ny: 0\nx: 0\n", "cal.bin:4: the tensor 'x' is there twice"},
  };
  for (const auto& [text, message] : cases) EXPECT_THAT(error_of(text), HasSubstr(message)) << text;
}

TEST(CalibrationCache, ANameWithALineBreakCannotBeWritten) {
  for (const char* name : {"a\nb", "", " a", "a\r"}) {
    CalibrationCache cache;
    cache.scales = {{name, 1.0f}};
    EXPECT_THAT([&] { calibration_cache_text(cache); }, ThrowsMessage<UserError>(HasSubstr("cannot stand"))) << name;
  }
}

TEST(TensorRtVersion, NumbersAsTaoHasThem) {
  EXPECT_EQ(parse_tensorrt_version("8.5.1", "--v").cache_number(), 8501);
  EXPECT_EQ(parse_tensorrt_version("8.6", "--v").cache_number(), 8600);
  EXPECT_EQ(parse_tensorrt_version("8.6.1.6", "--v").cache_number(), 8601);
  EXPECT_EQ(parse_tensorrt_version("10.13.2", "--v").cache_number(), 11302);
  EXPECT_EQ(parse_tensorrt_version("7.0.0", "--v").text(), "7.0.0");
  for (const char* text : {"", "8", "8.", "8.6.1.6.2", "8.x", "-8.6", "8.6.1 ", "v8.6", "8.600", "4.0"})
    EXPECT_THAT([&] { parse_tensorrt_version(text, "--v"); }, ThrowsMessage<UserError>(HasSubstr("--v"))) << text;
}

}  // namespace
}  // namespace octet::quant
