// What the row-run convolutions of this folder share: how they walk over pixels, and how they read them.
#pragma once
#include "engine/kernels/avx512_vnni/vector.h"
#include "engine/kernels/int8_conv.h"

namespace octet::kernels {

// Where the input bytes of a convolution lie: those of an output pixel are kernel_rows x segments_per_row runs of
// `dwords` dwords. Distances in bytes.
struct RowRuns {
  const uint8_t* first = nullptr;  // of output row first_line of image 0
  int64_t first_line = 0;
  int64_t line_step = 0;   // from one output row to the next
  int64_t pixel_step = 0;  // from one output pixel to the next
  int64_t kernel_rows = 0, row_step = 0, segments_per_row = 1, tap_step = 0, dwords = 0;
  const int8_t* weights = nullptr;  // [block of 16 output channels][row][segment][dword][16 output channels][4 bytes]
  int64_t block_bytes = 0;          // of weights
};

// The convolution over these runs; of `args` it takes all but the place of the weights and of the input's pixels.
void conv_row_runs(const ConvArgs& args, const RowRuns& runs, Range rows, Range blocks);

namespace {

// Broadcasts dword D behind pixel I of seven pixels starting at p; s1, s3, s5: one, three and five times their
// distance. By hand, because the compiler would keep a pointer for every pixel; three multiples of the step and the
// scaled addressing of x86 reach all seven.
template <int I, int D>
OCTET_INLINE Z broadcast(const uint8_t* p, int64_t s1, int64_t s3, int64_t s5) {
  Z v;
  if constexpr (I == 0) asm volatile("vpbroadcastd %c2(%1), %0" : "=v"(v) : "r"(p), "i"(D * 4));
  if constexpr (I == 1) asm volatile("vpbroadcastd %c3(%1,%2), %0" : "=v"(v) : "r"(p), "r"(s1), "i"(D * 4));
  if constexpr (I == 2) asm volatile("vpbroadcastd %c3(%1,%2,2), %0" : "=v"(v) : "r"(p), "r"(s1), "i"(D * 4));
  if constexpr (I == 3) asm volatile("vpbroadcastd %c3(%1,%2), %0" : "=v"(v) : "r"(p), "r"(s3), "i"(D * 4));
  if constexpr (I == 4) asm volatile("vpbroadcastd %c3(%1,%2,4), %0" : "=v"(v) : "r"(p), "r"(s1), "i"(D * 4));
  if constexpr (I == 5) asm volatile("vpbroadcastd %c3(%1,%2), %0" : "=v"(v) : "r"(p), "r"(s5), "i"(D * 4));
  if constexpr (I == 6) asm volatile("vpbroadcastd %c3(%1,%2,2), %0" : "=v"(v) : "r"(p), "r"(s3), "i"(D * 4));
  return v;
}

// Adds dword D of P pixels times V vectors of weights. low, high: the first pixel and the eighth.
template <int D, int P, int V, int I = 0>
OCTET_INLINE void add_dword(Z (&acc)[P][V], const uint8_t* low, const uint8_t* high, const Z (&weight)[V], int64_t s1,
                            int64_t s3, int64_t s5) {
  const Z b = broadcast<I % 7, D>(I < 7 ? low : high, s1, s3, s5);
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) acc[I][v] = _mm512_dpbusd_epi32(acc[I][v], b, weight[v]);
  if constexpr (I + 1 < P) add_dword<D, P, V, I + 1>(acc, low, high, weight, s1, s3, s5);
}

OCTET_INLINE bool dense_rows(const QTensor& t) {
  return t.row_stride == t.w * t.c_pitch && t.image_stride == t.h * t.row_stride;
}

// Dwords of a run that have weights: those of a single run need not be filled up to whole blocks of channels.
OCTET_INLINE int64_t run_dwords(const ConvGeometry& g, const ConvLayout& l) {
  return l.segments == 1 && g.kernel_w == 1 && g.groups == 1 ? (g.in_channels + 3) / 4 : l.dwords;
}

// A 1x1 convolution over tensors without gaps is one long line of pixels.
OCTET_INLINE bool is_one_line(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  return g.kernel_h == 1 && g.kernel_w == 1 && g.stride_h == 1 && g.stride_w == 1 && g.pad_top == 0 &&
         g.pad_left == 0 && a.in.h == e.out.h && a.in.w == e.out.w && dense_rows(a.in) &&
         (e.out.data == nullptr || dense_rows(e.out)) && (e.residual.data == nullptr || dense_rows(e.residual));
}

}  // namespace
}  // namespace octet::kernels
