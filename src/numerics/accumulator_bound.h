// Proof that an int32 accumulator cannot overflow.
#pragma once
#include <cstdint>
#include <span>

namespace octet::numerics {

// Largest |accumulator| that any input with codes in [qmin, qmax] can reach, at any point of the summation and in any
// order: |bias| + max|q - zero_point| * sum |w|. 64-bit, so it cannot overflow itself.
int64_t accumulator_bound(std::span<const int8_t> weights, int32_t bias, int32_t zero_point, int32_t qmin,
                          int32_t qmax);

}  // namespace octet::numerics
