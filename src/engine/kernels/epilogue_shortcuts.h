// What the numbers of a layer allow kernels to leave out, without a change of the result. Each file that includes this
// has functions of its own, compiled for its instruction set.
#pragma once
#include "engine/kernels/int8_conv.h"

namespace octet::kernels {
namespace {

// With |sum| <= 2^31 and |multiplier| < 1/2 a scaled sum stays within 2^30, and a residual adds less than 2^29: no sum
// needs a limit before it is converted to int32. Smaller sums may have larger multipliers.
inline bool sums_are_bounded(const Epilogue& e) {
  const auto small = [](float x, float limit) { return x < limit && x > -limit; };
  const float multiplier = 1073741824.0f / static_cast<float>(e.limits.greatest_sum);
  return small(e.limits.least_multiplier, multiplier) && small(e.limits.greatest_multiplier, multiplier) &&
         small(e.residual_multiplier, 2097152.0f) && small(e.mid_multiplier, 2097152.0f);
}

constexpr int32_t kBitsOfTwo23 = 0x4b000000;  // the float 2^23

// Codes from 0 on with zero point 0, 0 <= multiplier < 1, |sum| < 2^23: then a sum may start with the bits of 2^23f
// added to it. Read as a float, a sum s >= 0 is exactly 2^23 + s, and fma(2^23 + s, m, -2^23 m) = fl(s * m) is the
// product that the reference rounds, without a conversion. A negative sum gives a float below 2^23, so a product that
// is not positive and ends as 0, as it should. Where codes end before 255, the kernel limits them. The products of a
// sum are at most `products` times 255 * 128.
inline bool relu_shortcut(const ConvArgs& a, int64_t products) {
  const Epilogue& e = a.epilogue;
  return e.out.data != nullptr && e.residual.data == nullptr && e.table == nullptr && e.lo == 0 &&
         e.out.zero_point == 0 && products <= 256 && e.limits.least_multiplier >= 0 &&
         e.limits.greatest_multiplier < 1 && e.limits.greatest_start + products * 255 * 128 < 1 << 23;
}

constexpr int32_t kBitsOfMiddle = 0x4b400000;  // of the float 1.5 * 2^23
constexpr float kMiddle = 12582912;

// Functions on lines: a sum |s| < 2^22 that starts with the bits of 1.5 * 2^23 is, read as a float, exactly 1.5 * 2^23
// + s. Where 1.5 * 2^23 * m is a float, too, fma(1.5 * 2^23 + s, m, -1.5 * 2^23 * m) = fl(s * m), without a conversion.
inline bool lines_shortcut(const Epilogue& e) {
  return e.function.lines != nullptr && !e.function.has_tails() && e.residual.data == nullptr &&
         e.limits.short_multipliers && e.limits.greatest_sum < 1 << 22 && sums_are_bounded(e);
}

}  // namespace
}  // namespace octet::kernels
