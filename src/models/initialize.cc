#include "models/initialize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/files.h"

namespace octet::models {
namespace {

// SplitMix64 (Steele et al. 2014).
class Stream {
 public:
  Stream(uint64_t seed, const std::string& name) : state_(hash64(name, seed)) {}
  // In [0, 1), 53 bits.
  double next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return static_cast<double>(z >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

// 2 ** exponent * mantissa for a normal x > 0, with the mantissa in [0.5, 1); std::frexp is a call.
double split(double x, int& exponent) {
  const auto bits = std::bit_cast<uint64_t>(x);
  exponent = static_cast<int>(bits >> 52) - 1022;
  return std::bit_cast<double>((bits & 0x000fffffffffffff) | 0x3fe0000000000000);
}

// Natural logarithm for a normal x > 0. Its own, because that of the C library differs in the last bit between CPUs (it
// picks an FMA variant at run time) and the initial weights must not.
double logarithm(double x) {
  // 1 / k as constants: a network of a hundred million weights has half a billion of these terms.
  constexpr double kTerms[] = {1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1};
  int exponent;
  double m = split(x, exponent);
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1), t2 = t * t;  // |t| < 0.172: ten terms of 2 atanh(t) reach 1e-16
  double sum = 0;
  for (double term : kTerms) sum = sum * t2 + term;
  return exponent * std::numbers::ln2 + 2 * t * sum;
}

}  // namespace

// Marsaglia's polar method, in blocks: points are drawn without a branch on whether they lie in the circle, which
// nothing can predict, and the logarithms of a block do not wait for each other.
std::vector<float> normal_values(int64_t count, double deviation, uint64_t seed, const std::string& name) {
  constexpr size_t kBlock = 128;
  Stream stream(seed, name);
  std::vector<float> out(static_cast<size_t>(count));
  double u[kBlock + 1], v[kBlock + 1], s[kBlock + 1];
  for (size_t i = 0; i < out.size(); i += 2 * kBlock) {
    for (size_t found = 0; found < kBlock;) {
      u[found] = 2 * stream.next() - 1;
      v[found] = 2 * stream.next() - 1;
      s[found] = u[found] * u[found] + v[found] * v[found];
      found += static_cast<size_t>((s[found] < 1) & (s[found] != 0));
    }
    for (size_t k = 0; k < kBlock; ++k) s[k] = deviation * std::sqrt(-2 * logarithm(s[k]) / s[k]);
    const size_t left = std::min(2 * kBlock, out.size() - i);
    for (size_t k = 0; k < left; ++k) out[i + k] = static_cast<float>((k % 2 == 0 ? u : v)[k / 2] * s[k / 2]);
  }
  return out;
}

std::vector<float> uniform_values(int64_t count, double bound, uint64_t seed, const std::string& name) {
  Stream stream(seed, name);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& v : out) v = static_cast<float>((2 * stream.next() - 1) * bound);
  return out;
}

}  // namespace octet::models
