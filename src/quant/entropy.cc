#include "quant/entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "quant/density.h"

namespace octet::quant {
namespace {

double x_log_x(double x) {
  return x > 0 ? x * std::log(x) : 0;
}

// Prefix sums over the bins with which the divergence of a candidate costs one step a code instead of one a bin.
struct Bins {
  std::vector<double> mass, occupied, entropy;  // [k]: over bins 0 .. k - 1 of h, h > 0, h log h
  explicit Bins(const std::vector<double>& h) : mass(1, 0.0), occupied(1, 0.0), entropy(1, 0.0) {
    for (const double n : h) {
      mass.push_back(mass.back() + n);
      occupied.push_back(occupied.back() + (n > 0 ? 1 : 0));
      entropy.push_back(entropy.back() + x_log_x(n));
    }
  }
};

// KL(P || Q) of the first `i` bins merged into `codes`.
double divergence(const Bins& bins, const std::vector<double>& h, size_t i, size_t codes) {
  const double total = bins.mass.back(), kept = bins.mass[i], tail = total - kept;
  if (kept <= 0) return std::numeric_limits<double>::infinity();
  const double last = h[i - 1];
  // sum P log P, before P is normalized by `total`.
  const double p_log_p = bins.entropy[i] - x_log_x(last) + x_log_x(last + tail);
  const bool fill_last = last == 0 && tail > 0;
  double p_log_q = 0, q_total = 0;
  for (size_t code = 0; code < codes; ++code) {
    const size_t begin = code * i / codes, end = (code + 1) * i / codes;
    double mass = bins.mass[end] - bins.mass[begin], occupied = bins.occupied[end] - bins.occupied[begin], p = mass;
    if (end == i) {
      p += tail;
      if (fill_last) {
        occupied += 1;
        mass = std::max(mass, 1.0);  // as if one value had been seen: a finite divergence
      }
    }
    if (occupied == 0) continue;
    p_log_q += p * std::log(mass / occupied);
    q_total += mass;
  }
  return (p_log_p - p_log_q) / total - std::log(total) + std::log(q_total);
}

}  // namespace

float entropy_amax(const Histogram& histogram, int levels, double guard) {
  const float amax = histogram.amax();
  // Two of the histogram's bins make one, so that there are 2048 over the range.
  std::vector<double> h(static_cast<size_t>((histogram.used_bins() + 1) / 2), 0.0);
  for (size_t k = 0; k < h.size(); ++k)
    h[k] = static_cast<double>(histogram.bins()[2 * k] + histogram.bins()[2 * k + 1]);
  const size_t codes = static_cast<size_t>(levels) + 1;
  if (h.size() <= codes) return amax;
  h[0] = h[1];
  const Bins bins(h);
  const Density density(histogram);
  const double limit =
      guard > 0 ? guard * density.squared_error(amax, levels) : std::numeric_limits<double>::infinity();
  float best = amax;
  double best_divergence = std::numeric_limits<double>::infinity();
  for (size_t i = codes; i <= h.size(); ++i) {
    const float edge = std::min(amax, static_cast<float>(static_cast<double>(i) * 2 * histogram.bin_width()));
    const double d = divergence(bins, h, i, codes);
    if (d > best_divergence || density.squared_error(edge, levels) > limit) continue;
    best_divergence = d;
    best = edge;
  }
  return best;
}

}  // namespace octet::quant
