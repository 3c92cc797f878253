#include "quant/calibration_cache.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"

namespace octet::quant {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// "TRT-8601-EntropyCalibration2", or the "1" of early TAO versions.
void read_header(std::string_view line, const std::string& name, CalibrationCache& cache) {
  if (line == "1") {
    cache.version.clear();
    return;
  }
  const size_t dash = line.find('-', 4);
  const bool right = line.starts_with("TRT-") && dash != std::string_view::npos && dash > 4 && dash + 1 < line.size() &&
                     std::all_of(line.begin() + 4, line.begin() + static_cast<std::ptrdiff_t>(dash),
                                 [](char c) { return c >= '0' && c <= '9'; });
  if (!right)
    fail(name, ":1: is no calibration cache; its first line should be TRT-VERSION-ALGORITHM, as in ",
         "TRT-8601-EntropyCalibration2");
  cache.version = line.substr(4, dash - 4);
  cache.algorithm = line.substr(dash + 1);
}

float read_scale(std::string_view digits, const std::string& where) {
  uint32_t bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.size() > 8)
    fail(where, "'", digits, "' is no scale; expected the bits of a float32 in up to 8 hexadecimal digits");
  const float scale = std::bit_cast<float>(bits);
  if (!std::isfinite(scale) || std::signbit(scale))
    fail(where, "the scale ", digits, " is ", scale, "; expected a finite number that is not negative");
  return scale;
}

}  // namespace

std::string TensorRtVersion::text() const {
  return str(major, ".", minor, ".", patch);
}

TensorRtVersion parse_tensorrt_version(const std::string& text, const std::string& flag) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool right = !text.empty();
  while (right) {
    int number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    right = error == std::errc() && number >= 0 && number < 1000 && numbers.size() < 4;
    numbers.push_back(number);
    at = next;
    if (at == end) break;
    right = right && *at == '.';
    ++at;
  }
  if (!right || numbers.size() < 2 || numbers[0] < 5 || numbers[1] > 99 || (numbers.size() > 2 && numbers[2] > 99))
    fail_usage(flag, " ", text, ": expected a version of TensorRT, MAJOR.MINOR or MAJOR.MINOR.PATCH, as in 8.6.1");
  return {numbers[0], numbers[1], numbers.size() > 2 ? numbers[2] : 0};
}

CalibrationCache parse_calibration_cache(std::string_view text, const std::string& name) {
  CalibrationCache cache;
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (number == 1) {
      read_header(line, name, cache);
      continue;
    }
    if (line.empty()) continue;
    const std::string where = str(name, ":", number, ": ");
    const size_t colon = line.rfind(':');  // names have colons, too: "input:0"
    if (colon == std::string_view::npos || colon == 0)
      fail(where, "'", line.substr(0, 60), "' is no line of a calibration cache; expected TENSOR: SCALE");
    const std::string tensor(trimmed(line.substr(0, colon)));
    if (!cache.scales.emplace(tensor, read_scale(trimmed(line.substr(colon + 1)), where)).second)
      fail(where, "the tensor '", tensor, "' is there twice");
  }
  if (number == 0) fail(name, ": is empty; expected a calibration cache");
  return cache;
}

std::string calibration_cache_text(const CalibrationCache& cache) {
  std::string out = cache.version.empty() ? "1\n" : str("TRT-", cache.version, "-", cache.algorithm, "\n");
  for (const auto& [tensor, scale] : cache.scales) {
    if (tensor.find_first_of("\r\n") != std::string::npos || trimmed(tensor) != tensor || tensor.empty())
      fail("the tensor '", tensor, "' cannot stand in a calibration cache: its name is empty or has a line break, or ",
           "begins or ends with a space");
    char digits[9] = {};
    std::to_chars(digits, digits + sizeof digits - 1, std::bit_cast<uint32_t>(scale), 16);
    out += tensor + ": " + digits + "\n";
  }
  return out;
}

}  // namespace octet::quant
