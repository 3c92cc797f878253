// Exact Winograd convolution F(4x4,3x3) in 16-bit integers: a quarter of the multiplications of the direct sum, and the
// same bits. For an input tile d (6x6 codes), a kernel g (3x3) and
//
//        | 4  0 -5  0  1  0 |         |  6  0  0 |
//        | 0 -4 -4  1  1  0 |         | -4 -4 -4 |         | 1  1  1  1  1  0 |
//   BT = | 0  4 -4 -1  1  0 |     G = | -4  4 -4 |    AT = | 0  1 -1  2 -2  0 |
//        | 0 -2 -1  2  1  0 |         |  1  2  4 |         | 0  1  1  4  4  0 |
//        | 0  2 -1 -2  1  0 |         |  1 -2  4 |         | 0  1 -1  8 -8  4 |
//        | 0  4  0 -5  0  1 |         |  0  0  6 |
//
//   AT [ (G g GT) . (BT d B) ] A = 576 conv(d, g)                                      (4x4 outputs)
//
// G is 24 times the usual one, but for the last row (6 instead of 24); the missing 4 is in the last column of AT.
// - Transformed codes lie in [-12750, 17340] (u8 as stored: the zero point is in acc_init), transformed weights in
//   [-18432, 18432]: both fit 16 bits, and the sum of two products fits 32.
// - All sums are taken modulo 2^32. 576 = 2^6 * 9 and 9 * 954437177 = 1 (mod 2^32), so
//   acc = int32(S * 954437177) >> 6, which is exact if and only if -2^25 <= acc < 2^25.
// - That is proved for every output channel when the weights are prepared: 255 * (sum of the positive weights) and
//   255 * (sum of the absolute values of the negative ones) are below 2^25. Where a channel has too many weights for
//   it, the input channels are cut into parts that are recovered one by one; 112 channels always fit one part.
// - Where all channels fit one part together with their acc_init, the start is added to S (as 576 acc_init, to the one
//   position that reaches all 16 outputs alike), and the shift is left out: the outputs get 64 acc, and 1/64 of their
//   multipliers. Both factors are powers of two, so the floats are the same.
//
// Loops: a block of tiles is transformed (V), then for groups of output channels 36 products V * U are taken (M) and
// transformed back, so that V and M stay in the L2 cache and every panel of U serves all tiles of the block.
#pragma once
#include <cstddef>

#include "engine/kernels/int8_conv.h"

namespace octet::kernels {

inline constexpr int64_t kWinogradTile = 4;        // outputs of a tile along each axis; it reads 6 inputs
inline constexpr int64_t kWinogradPositions = 36;  // of a transformed tile

inline constexpr int64_t kWinogradCache = 2 << 20;  // bytes of the second-level cache that blockings are made for

// What a kernel is built of, and how its loops are blocked.
struct WinogradBlocking {
  int64_t chunk = 16;        // input channels that are transformed at once; U and V are padded to a multiple
  int64_t tiles = 6;         // of one product
  int64_t unit = 1;          // blocks of 16 output channels of one product
  int64_t block_tiles = 48;  // tiles whose V is kept; fewer where the cache is smaller
  int64_t group = 4;         // blocks of 16 output channels whose M is kept
};

// Places in the prepared weights and in the scratch memory of a thread, in bytes.
struct WinogradPlan {
  int64_t channels = 0;     // input channels, padded
  int64_t chunks = 0;       // of blocking.chunk input channels
  int64_t block_tiles = 0;  // at most this many tiles at once
  int64_t group = 0;        // blocks of 16 output channels at once, if they fit `sum_blocks` with all parts
  int64_t max_parts = 1;    // into which the input channels may be cut
  int64_t sum_blocks = 0;   // room in M: blocks x parts
  int64_t position_bytes = 0, block_bytes = 0, sums_at = 0, prepared_bytes = 0;  // of the transformed weights
  int64_t starts_at = 0, multipliers_at = 0;                                     // see WinogradHeader::at_once
  int64_t v_bytes = 0, m_bytes = 0, acc_bytes = 0, tile_bytes = 0, scratch_bytes = 0;
};

// The head of the prepared weights; the weights follow as [block of 16 output channels][36][pair of input channels]
// [16 output channels][2], 16 bits each, and at sums_at what winograd_parts() takes.
struct alignas(64) WinogradHeader {
  int32_t parts = 1;
  int32_t at_once = 0;  // 576 acc_init is at starts_at, and 1/64 of the multipliers is at multipliers_at
};

// 3x3, stride 1, dilation 1, one group, codes with whole blocks of 16 channels; any padding, size and epilogue.
bool winograd_applies(const ConvArgs& args);
int64_t winograd_tiles(const ConvArgs& args);  // of the whole output
WinogradPlan winograd_plan(const ConvArgs& args, const WinogradBlocking& blocking);

// The fewest parts of equally many chunks for which the proof above holds. sums: [block][chunk][2][16], the sums of the
// positive weights and of the absolute values of the negative ones.
int32_t winograd_parts(const int32_t* sums, int64_t blocks, int64_t chunks);

// Whether the start may be part of the sums and the shift be left out (see above); fills both arrays if so.
bool winograd_at_once(const ConvArgs& args, const WinogradPlan& plan, const int32_t* sums, int32_t* starts,
                      float* multipliers);

// One instruction set's Winograd convolution. `prepared` (plan.prepared_bytes) and `scratch` (plan.scratch_bytes, of
// one thread) are 64-byte aligned; the plan is winograd_plan(args, blocking).
struct WinogradKernel {
  WinogradBlocking blocking;
  void (*prepare)(const ConvArgs& args, const WinogradPlan& plan, std::byte* prepared);
  void (*run)(const ConvArgs& args, const WinogradPlan& plan, const std::byte* prepared, std::byte* scratch, Range rows,
              Range blocks);
};
extern const WinogradKernel winograd_avx2, winograd_avx_vnni, winograd_avx512_vnni, row_winograd_avx512_vnni;

// The part's range of chunks.
inline Range winograd_part(int64_t chunks, int64_t parts, int64_t part) {
  return {chunks * part / parts, chunks * (part + 1) / parts};
}

}  // namespace octet::kernels
