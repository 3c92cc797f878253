// The AMX tile unit: configuration and the five instructions the convolutions use, as functions of a tile number.
//
// By inline assembly: the compiler's intrinsics take the number as a literal only, so templates over a register
// blocking cannot use them, and they order tile stores against everything else. Here loads say nothing to the compiler:
// a caller that writes what a tile then loads separates the two with a function call or fence_writes().
#pragma once
#include "engine/kernels/avx512_vnni/vector.h"

namespace octet::kernels {
namespace {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileBytes = 1024;  // 16 rows of 64 bytes

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};
};

// Tiles 0-3: sums of `pixels` rows; from 4 to `first_weights` - 1: activations, `pixels` rows of `dwords` dwords; then
// up to 7: weights, `dwords` rows.
inline void configure_tiles(int64_t pixels, int64_t dwords, int first_weights) {
  TileConfig c;
  for (int t = 0; t < 8; ++t) {
    const bool activations = t >= 4 && t < first_weights;
    c.bytes_per_row[t] = static_cast<uint16_t>(activations ? dwords * 4 : 64);
    c.rows[t] = static_cast<uint8_t>(t < first_weights ? pixels : dwords);
  }
  // The instruction does not claim to read all of c: without the memory clobber its stores could be dropped.
  asm volatile("ldtilecfg %0" : : "m"(c) : "memory");
}
inline void release_tiles() {
  asm volatile("tilerelease");
}
// Makes the compiler finish its stores before the tile loads that follow.
OCTET_INLINE void fence_writes() {
  asm volatile("" : : : "memory");
}

template <int T>
OCTET_INLINE void tile_load(const void* p, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(T));
}
// Leaves the lines out of the L1 cache where it can: for weights that are used once, so that activations stay there.
template <int T>
OCTET_INLINE void tile_load_streaming(const void* p, int64_t stride) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(T));
}
template <int T>
OCTET_INLINE void tile_store(void* p, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(T) : "memory");
}
template <int T>
OCTET_INLINE void tile_zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(T));
}
// Sum += activations (u8) x weights (s8).
template <int Sum, int Activations, int Weights>
OCTET_INLINE void tile_multiply() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sum), "i"(Activations), "i"(Weights));
}

}  // namespace
}  // namespace octet::kernels
