// From a range of numbers to the codes that cover it, where these are not symmetric.
#pragma once
#include <algorithm>
#include <cstdint>

#include "numerics/quantize.h"

namespace octet::numerics {

// Codes qmin .. qmax over [low, high], which is widened to hold 0, so that 0 has a code of its own (what padding
// writes). The zero point is the code next to where 0 lies, so the ends of the range may lie half a step beyond the
// last codes.
inline QuantParams params_of_range(float low, float high, int32_t qmin, int32_t qmax) {
  const double l = std::min(low, 0.0f), h = std::max(high, 0.0f);
  const float scale = std::max(static_cast<float>((h - l) / (qmax - qmin)), kMinScale);
  const int32_t zero = round_to_int(static_cast<float>(qmin - l / static_cast<double>(scale)), qmin, qmax, qmin);
  return {.scale = scale, .zero_point = h > l ? zero : std::clamp(0, qmin, qmax), .qmin = qmin, .qmax = qmax};
}

}  // namespace octet::numerics
