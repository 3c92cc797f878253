// Limits and extremes of floats that keep NaN, which every comparison with it is false for: a network that is fed with
// NaN must not answer with an ordinary number. Vector code does the same with the bound, or what was found so far, as
// the first operand of vminps and vmaxps, which give the second where one is NaN.
#pragma once

namespace octet::kernels {
namespace {

inline float at_least(float bound, float x) {
  return bound > x ? bound : x;
}
inline float at_most(float bound, float x) {
  return bound < x ? bound : x;
}
inline float limited(float x, float lo, float hi) {
  return at_most(hi, at_least(lo, x));
}

// NaN where either is.
inline float larger_or_nan(float a, float b) {
  return a > b || a != a ? a : b;
}
inline float lesser_or_nan(float a, float b) {
  return a < b || a != a ? a : b;
}

}  // namespace
}  // namespace octet::kernels
