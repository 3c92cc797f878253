// What the Winograd kernels with 256-bit vectors share behind their products.
#pragma once
#include "engine/kernels/avx2/finish.h"
#include "engine/kernels/avx2/vector.h"

namespace octet::kernels {
namespace {

// Sums of P tiles and 16 channels to the memory of one transformed position.
template <int P>
OCTET_INLINE void store_tiles(const Y (&acc)[P][2], uint32_t* m) {
#pragma GCC unroll 6
  for (int p = 0; p < P; ++p) {
    store32(m + p * 36 * 16, acc[p][0]);
    store32(m + p * 36 * 16 + 8, acc[p][1]);
  }
}

// Recovered accumulators of a row to outputs.
struct FinishRows {
  Finish finish;
  explicit FinishRows(const Epilogue& epilogue) : finish(epilogue) {}
  template <int V>
  void operator()(const int32_t* acc, int64_t pixels, int64_t channel, int64_t n, int64_t y, int64_t x) const {
    finish.row(acc, pixels, channel, n, y, x);
  }
};

}  // namespace
}  // namespace octet::kernels
