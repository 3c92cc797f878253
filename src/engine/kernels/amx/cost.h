// Estimated time of a convolution on tiles, from rates measured at 3.5 GHz: multiplying and finishing barely overlap,
// because both want the same loads and stores.
#pragma once
#include "engine/kernels/amx/band.h"
#include "engine/kernels/cpu_model.h"

namespace octet::kernels {
namespace {

struct TileCost {
  int64_t tiles = 0;   // of pixels
  int64_t blocks = 0;  // of 16 channels
  int64_t steps = 0;   // along K
  double cycles = 0;   // of one multiplication, its share of the loads included
  double store = 0;    // of 16 outputs, on top of the arithmetic: narrow blocks write more pieces
};

inline double microseconds(const TileCost& c, const Epilogue& e, int threads) {
  const auto sums = static_cast<double>(c.tiles * c.blocks);
  const double finish = e.residual.data == nullptr ? 3.5 : e.rounds_twice ? 9.4 : 6.2;  // 16 outputs
  const double cycles = sums * (static_cast<double>(c.steps) * c.cycles + 15 + (finish + c.store) * kTileRows);
  return 0.7 + cycles / (cpu_model().cycles_per_us * threads);
}

}  // namespace
}  // namespace octet::kernels
