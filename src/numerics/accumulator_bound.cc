#include "numerics/accumulator_bound.h"

#include <algorithm>
#include <cstdlib>

#include "numerics/quantize_span.h"

namespace octet::numerics {

int64_t accumulator_bound(std::span<const int8_t> weights, int32_t bias, int32_t zero_point, int32_t qmin,
                          int32_t qmax) {
  const int64_t magnitude = sum_of_magnitudes(weights);
  const int64_t reach =
      std::max(std::abs(static_cast<int64_t>(qmax) - zero_point), std::abs(static_cast<int64_t>(qmin) - zero_point));
  return std::abs(static_cast<int64_t>(bias)) + reach * magnitude;
}

}  // namespace octet::numerics
