#include "models/initialize.h"

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

// Natural logarithm for x > 0. Its own, because that of the C library differs in the last bit between CPUs (it picks
// an FMA variant at run time) and the initial weights must not.
double logarithm(double x) {
  int exponent;
  double m = std::frexp(x, &exponent);  // [0.5, 1)
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1), t2 = t * t;  // |t| < 0.172: ten terms of 2 atanh(t) reach 1e-16
  double sum = 0;
  for (int k = 19; k >= 1; k -= 2) sum = sum * t2 + 1.0 / k;
  return exponent * std::numbers::ln2 + 2 * t * sum;
}

}  // namespace

std::vector<float> normal_values(int64_t count, double deviation, uint64_t seed, const std::string& name) {
  Stream stream(seed, name);
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); i += 2) {  // Marsaglia's polar method
    double u, v, s;
    do {
      u = 2 * stream.next() - 1;
      v = 2 * stream.next() - 1;
      s = u * u + v * v;
    } while (s >= 1 || s == 0);
    const double factor = deviation * std::sqrt(-2 * logarithm(s) / s);
    out[i] = static_cast<float>(u * factor);
    if (i + 1 < out.size()) out[i + 1] = static_cast<float>(v * factor);
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
