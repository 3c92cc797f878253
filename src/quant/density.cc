#include "quant/density.h"

#include <algorithm>

#include "numerics/quantize.h"

namespace octet::quant {

Density::Density(const Histogram& histogram)
    : amax_(histogram.amax()), width_(histogram.bin_width()), bins_(histogram.used_bins()) {
  prefix_.resize(static_cast<size_t>(bins_) + 1);
  for (int k = 0; k < bins_; ++k) {
    const double n = static_cast<double>(histogram.bins()[static_cast<size_t>(k)]);
    const double low = width_ * k, high = upper_edge(k);
    Moments& next = prefix_[static_cast<size_t>(k) + 1];
    next = prefix_[static_cast<size_t>(k)];
    next.mass += n;
    next.first += n * (low + high) / 2;
    next.second += n * (low * low + low * high + high * high) / 3;
  }
}

Density::Moments Density::up_to(double t) const {
  if (bins_ == 0 || t >= amax_) return prefix_.back();
  const int k = std::min(static_cast<int>(t / width_), bins_ - 1);
  const double low = width_ * k, high = upper_edge(k);
  Moments m = prefix_[static_cast<size_t>(k)];
  if (t <= low) return m;
  // Here low < t < high: a part of bin k.
  const double n = (prefix_[static_cast<size_t>(k) + 1].mass - m.mass) * (t - low) / (high - low);
  m.mass += n;
  m.first += n * (low + t) / 2;
  m.second += n * (low * low + low * t + t * t) / 3;
  return m;
}

double Density::squared_error(float amax, int levels) const {
  const double scale = numerics::scale_from_amax(amax, levels);
  double error = 0;
  Moments below;
  for (int q = 0; q <= levels; ++q) {
    // Everything that is rounded, or clipped, to code q.
    const Moments above = q == levels ? total() : up_to((q + 0.5) * scale);
    const double x = q * scale;
    error += (above.second - below.second) - 2 * x * (above.first - below.first) + x * x * (above.mass - below.mass);
    below = above;
    if (below.mass == total().mass) break;
  }
  return std::max(error, 0.0);
}

}  // namespace octet::quant
