#include "engine/kernels/winograd/winograd.h"

#include <algorithm>
#include <cmath>

#include "base/cpu_limits.h"
#include "base/error.h"

namespace octet::kernels {
namespace {

constexpr int64_t kLimit = int64_t{1} << 25;
constexpr int64_t kLine = 64;

int64_t round_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

// As many as a smaller cache than that of the blocking holds, whole products of them, and one: the larger share of an
// odd number of tiles need not go twice over the weights. Weights that stay in the cache may be gone over more often.
int64_t cached_tiles(const WinogradBlocking& b, int64_t weight_bytes) {
  static const int64_t cache = std::min(second_level_cache_bytes(), kWinogradCache);
  const int64_t tiles = std::max<int64_t>(b.block_tiles * cache / kWinogradCache / b.tiles * b.tiles, b.tiles) + 1;
  return weight_bytes <= cache / 2 ? tiles * 4 / 5 : tiles;
}

}  // namespace

bool winograd_applies(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  return g.groups == 1 && g.kernel_h == 3 && g.kernel_w == 3 && g.stride_h == 1 && g.stride_w == 1 &&
         g.dilation_h == 1 && g.dilation_w == 1 && pixel_bytes(g) % kChannelBlock == 0;
}

int64_t winograd_tiles(const ConvArgs& a) {
  const QTensor& out = a.epilogue.out;
  return out.n * ((out.h + kWinogradTile - 1) / kWinogradTile) * ((out.w + kWinogradTile - 1) / kWinogradTile);
}

WinogradPlan winograd_plan(const ConvArgs& a, const WinogradBlocking& b) {
  WinogradPlan p;
  p.channels = round_up(a.geometry.in_channels, b.chunk);
  p.chunks = p.channels / b.chunk;
  // A part of 112 channels has 1008 weights of at most 128 in absolute value: 255 * 128 * 1008 < 2^25.
  p.max_parts = (p.chunks + 112 / b.chunk - 1) / (112 / b.chunk);
  const int64_t blocks = padded_channels(a.geometry.out_channels) / kChannelBlock;
  p.group = round_up(std::min(blocks, b.group), b.unit);
  p.sum_blocks = std::max(p.group, b.unit * p.max_parts);
  // Two more cache lines for each position, else those of large layers meet in few sets of the cache.
  p.position_bytes = p.channels * kChannelBlock * 2 + 2 * kLine;
  p.block_bytes = kWinogradPositions * p.position_bytes;
  p.block_tiles = std::min(winograd_tiles(a), cached_tiles(b, blocks * p.block_bytes));
  p.sums_at = static_cast<int64_t>(sizeof(WinogradHeader)) + blocks * p.block_bytes;
  p.starts_at = p.sums_at + blocks * p.chunks * 2 * kChannelBlock * 4;
  p.multipliers_at = p.starts_at + blocks * kChannelBlock * 4;
  p.prepared_bytes = p.multipliers_at + blocks * kChannelBlock * 4;
  // One for the positions of a product's tiles.
  const int64_t products = (p.block_tiles + b.tiles - 1) / b.tiles;
  p.v_bytes = kWinogradPositions * (p.block_tiles * p.channels * 2 + products * kLine);
  p.m_bytes = kWinogradPositions * p.block_tiles * p.sum_blocks * kChannelBlock * 4;
  p.acc_bytes = kWinogradTile * kWinogradTile * b.tiles * b.unit * kChannelBlock * 4;
  p.tile_bytes = round_up(p.block_tiles * 64, kLine);
  p.scratch_bytes = p.v_bytes + p.m_bytes + p.acc_bytes + p.tile_bytes;
  return p;
}

int32_t winograd_parts(const int32_t* sums, int64_t blocks, int64_t chunks) {
  const auto holds = [&](int64_t parts) {
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t part = 0; part < parts; ++part) {
        const Range range = winograd_part(chunks, parts, part);
        for (int64_t lane = 0; lane < 2 * kChannelBlock; ++lane) {
          int64_t sum = 0;
          for (int64_t c = range.begin; c < range.end; ++c) sum += sums[(b * chunks + c) * 2 * kChannelBlock + lane];
          if (255 * sum >= kLimit) return false;
        }
      }
    return true;
  };
  int64_t parts = 1;
  while (!holds(parts)) OCTET_CHECK(++parts <= chunks);
  return static_cast<int32_t>(parts);
}

bool winograd_at_once(const ConvArgs& a, const WinogradPlan& plan, const int32_t* sums, int32_t* starts,
                      float* multipliers) {
  constexpr float kLeast = 0x1p-100f;  // far from the smallest float with all its bits
  for (int64_t c = 0; c < padded_channels(a.geometry.out_channels); ++c) {
    const int64_t block = c / kChannelBlock, lane = c % kChannelBlock;
    int64_t positive = 0, negative = 0;
    for (int64_t i = 0; i < plan.chunks; ++i) {
      const int32_t* sum = sums + (block * plan.chunks + i) * 2 * kChannelBlock + lane;
      positive += sum[0], negative += sum[kChannelBlock];
    }
    const int64_t start = a.acc_init[c];
    const float m = c < a.geometry.out_channels ? a.epilogue.multiplier[c] : 0;
    if (255 * positive + start >= kLimit || 255 * negative - start >= kLimit) return false;
    if (m != 0 && !(std::fabs(m) >= kLeast)) return false;
    starts[c] = static_cast<int32_t>(static_cast<uint32_t>(a.acc_init[c]) * 576);
    multipliers[c] = m / 64;
  }
  return true;
}

}  // namespace octet::kernels
