// Any bytes as a calibration cache: refused with a UserError, or ranges that are written and read again the same.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "quant/calibration_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  quant::CalibrationCache cache;
  try {
    cache = quant::parse_calibration_cache(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  } catch (const UserError&) {
    return 0;
  }
  for (const auto& [name, scale] : cache.scales)
    if (!std::isfinite(scale) || scale < 0) std::abort();
  std::string text;
  try {
    text = quant::calibration_cache_text(cache);
  } catch (const UserError&) {
    return 0;  // a carriage return in the middle of a name
  }
  const quant::CalibrationCache again = quant::parse_calibration_cache(text, "again");
  if (again.scales != cache.scales || again.version != cache.version || again.algorithm != cache.algorithm)
    std::abort();
  return 0;
}
