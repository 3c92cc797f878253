// A histogram read as a density of magnitudes (uniform within a bin), with its integrals: what calibration methods work
// on.
#pragma once
#include <vector>

#include "quant/histogram.h"

namespace octet::quant {

class Density {
 public:
  explicit Density(const Histogram& histogram);

  // Integrals of the density times 1, x and x^2.
  struct Moments {
    double mass = 0, first = 0, second = 0;
  };
  // Over the magnitudes from 0 to t. Exact zeros of the tensor are not in it.
  Moments up_to(double t) const;
  const Moments& total() const { return prefix_.back(); }

  double amax() const { return amax_; }    // exact, not an edge of a bin
  double width() const { return width_; }  // of a bin
  int bins() const { return bins_; }       // the last one ends at amax()

  // Sums over all values of (x - fake_quantize(x))^2 with scale_from_amax(amax, levels): magnitude codes 0 .. levels.
  struct SquaredError {
    double rounding = 0, clipping = 0;  // of values up to amax, and of those beyond
    double sum() const { return rounding + clipping; }
  };
  SquaredError squared_errors(float amax, int levels) const;
  double squared_error(float amax, int levels) const { return squared_errors(amax, levels).sum(); }

 private:
  double upper_edge(int bin) const { return bin + 1 == bins_ ? amax_ : width_ * (bin + 1); }

  double amax_, width_;
  int bins_;
  std::vector<Moments> prefix_;  // over bins 0 .. k - 1
};

}  // namespace octet::quant
