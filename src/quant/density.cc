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

Density::SquaredError Density::squared_errors(float amax, int levels) const {
  const double scale = numerics::scale_from_amax(amax, levels);
  // Of the values between two magnitudes, which all become the code of x.
  const auto around = [](const Moments& low, const Moments& high, double x) {
    return (high.second - low.second) - 2 * x * (high.first - low.first) + x * x * (high.mass - low.mass);
  };
  SquaredError out;
  Moments below;
  for (int q = 0; q <= levels; ++q) {
    const Moments above = up_to(q == levels ? std::max<double>(amax, (q - 0.5) * scale) : (q + 0.5) * scale);
    out.rounding += around(below, above, q * scale);
    below = above;
    if (below.mass == total().mass) break;
  }
  out.clipping = std::max(around(below, total(), levels * scale), 0.0);
  out.rounding = std::max(out.rounding, 0.0);
  return out;
}

}  // namespace octet::quant
