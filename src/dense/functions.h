// Functions of one number that several operators need, in forms that do not overflow.
#pragma once
#include <cmath>

namespace octet::dense {

inline float sigmoid(float x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

inline float softplus(float x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

}  // namespace octet::dense
