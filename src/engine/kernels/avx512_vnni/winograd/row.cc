// Winograd convolution with vpdpwssd: products of a row of positions of 4 tiles x 16 output channels, which are
// transformed along the row before they are stored.
//
// Four sums leave a product for six, and two thirds as many come back to be transformed along the columns: with few
// input channels that is a tenth of the time. Every product takes its codes from memory as an operand, and loads 30
// vectors for 24 products, which only costs nothing where a cycle has more loads than products (AMD's Zen 4 and Zen 5).
#include "engine/kernels/avx512_vnni/winograd/products.h"

namespace octet::kernels {
namespace {

constexpr int kRow = 6;                                              // positions
constexpr int64_t kTileSums = kRow * kWinogradTile * kChannelBlock;  // of a tile, in M

// Six places that are equally far from each other: scaled addressing reaches all of them from one.
struct Steps {
  int64_t one, three, five;
  explicit Steps(int64_t bytes) : one(bytes), three(3 * bytes), five(5 * bytes) {}
};

struct Avx512RowWinograd : Avx512Winograd {
  static constexpr WinogradBlocking kBlocking{.chunk = 32, .tiles = 4, .unit = 1, .block_tiles = 100, .group = 1};

  // What a product multiplies, in bytes.
  struct Operands {
    const std::byte *v, *u;  // of the row's first position: [chunk][P][32 input channels], [pair][16][2]
    Steps v_step, u_step;    // to the next positions
    int64_t chunks;
    const int32_t* start;    // of position 1, or nullptr
    uint32_t* m;             // [tile][6 rows][4 columns][16], of the row
    const std::byte* ahead;  // weights to fetch meanwhile, a line with every pair of input channels
  };

  template <int P>
  static void multiply_row(const Operands& o) {
    Z acc[kRow][P];
#pragma GCC unroll 6
    for (int c = 0; c < kRow; ++c)
#pragma GCC unroll 4
      for (int t = 0; t < P; ++t) asm volatile("vpxord %0, %0, %0" : "=v"(acc[c][t]));
    if (o.start)
#pragma GCC unroll 4
      for (int t = 0; t < P; ++t)
        asm volatile("vmovdqu64 %1, %0" : "=v"(acc[1][t]) : "m"(*reinterpret_cast<const int32_t(*)[16]>(o.start)));
    const Steps v_step = o.v_step, u_step = o.u_step;
    const std::byte *v = o.v, *u = o.u, *ahead = o.ahead;
    for (int64_t left = o.chunks; left > 0; --left, v += P * 64, u += 16 * 64, ahead += 16 * 64)
      add_pairs<P>(acc, v, v_step, u, u_step, ahead);
    uint32_t* m = o.m;
#pragma GCC unroll 4
    for (int t = 0; t < P; ++t, m += kTileSums) {
      Vectors::Sums sums[kRow], y[kWinogradTile];
#pragma GCC unroll 6
      for (int c = 0; c < kRow; ++c) sums[c] = (Vectors::Sums)acc[c][t];
      transform_output(sums, y);
#pragma GCC unroll 4
      for (int x = 0; x < kWinogradTile; ++x) store_vector(m + x * kChannelBlock, y[x]);
    }
  }

 private:
  // The 16 pairs of a chunk. By hand, because the compiler would keep an address for every operand.
  template <int P, int K = 0>
  static OCTET_INLINE void add_pairs(Z (&acc)[kRow][P], const std::byte* v, const Steps& v_step, const std::byte* u,
                                     const Steps& u_step, const std::byte* ahead) {
    if constexpr (K < 16) {
      __builtin_prefetch(ahead + K * 64, 0, 2);
      add_positions<P, K>(acc, v, v_step, u, u_step);
      add_pairs<P, K + 1>(acc, v, v_step, u, u_step, ahead);
    }
  }
  template <int P, int K, int C = 0>
  static OCTET_INLINE void add_positions(Z (&acc)[kRow][P], const std::byte* v, const Steps& v_step, const std::byte* u,
                                         const Steps& u_step) {
    if constexpr (C < kRow) {
      const Z weights = weights_of<C, K * 64>(u, u_step);
      add_tiles<C, P, K>(acc, v, v_step, weights);
      add_positions<P, K, C + 1>(acc, v, v_step, u, u_step);
    }
  }
  template <int C, int kAt>
  static OCTET_INLINE Z weights_of(const std::byte* u, const Steps& s) {
    Z w;
    if constexpr (C == 0) asm volatile("vmovdqu64 %c2(%1), %0" : "=v"(w) : "r"(u), "i"(kAt));
    if constexpr (C == 1) asm volatile("vmovdqu64 %c3(%1,%2), %0" : "=v"(w) : "r"(u), "r"(s.one), "i"(kAt));
    if constexpr (C == 2) asm volatile("vmovdqu64 %c3(%1,%2,2), %0" : "=v"(w) : "r"(u), "r"(s.one), "i"(kAt));
    if constexpr (C == 3) asm volatile("vmovdqu64 %c3(%1,%2), %0" : "=v"(w) : "r"(u), "r"(s.three), "i"(kAt));
    if constexpr (C == 4) asm volatile("vmovdqu64 %c3(%1,%2,4), %0" : "=v"(w) : "r"(u), "r"(s.one), "i"(kAt));
    if constexpr (C == 5) asm volatile("vmovdqu64 %c3(%1,%2), %0" : "=v"(w) : "r"(u), "r"(s.five), "i"(kAt));
    return w;
  }
  template <int C, int P, int K, int T = 0>
  static OCTET_INLINE void add_tiles(Z (&acc)[kRow][P], const std::byte* v, const Steps& s, const Z& w) {
    if constexpr (T < P) {
      constexpr int kAt = T * 64 + K * 4;
      Z& sum = acc[C][T];
      if constexpr (C == 0) asm volatile("vpdpwssd %c2(%1)%{1to16%}, %3, %0" : "+v"(sum) : "r"(v), "i"(kAt), "v"(w));
      if constexpr (C == 1)
        asm volatile("vpdpwssd %c3(%1,%2)%{1to16%}, %4, %0" : "+v"(sum) : "r"(v), "r"(s.one), "i"(kAt), "v"(w));
      if constexpr (C == 2)
        asm volatile("vpdpwssd %c3(%1,%2,2)%{1to16%}, %4, %0" : "+v"(sum) : "r"(v), "r"(s.one), "i"(kAt), "v"(w));
      if constexpr (C == 3)
        asm volatile("vpdpwssd %c3(%1,%2)%{1to16%}, %4, %0" : "+v"(sum) : "r"(v), "r"(s.three), "i"(kAt), "v"(w));
      if constexpr (C == 4)
        asm volatile("vpdpwssd %c3(%1,%2,4)%{1to16%}, %4, %0" : "+v"(sum) : "r"(v), "r"(s.one), "i"(kAt), "v"(w));
      if constexpr (C == 5)
        asm volatile("vpdpwssd %c3(%1,%2)%{1to16%}, %4, %0" : "+v"(sum) : "r"(v), "r"(s.five), "i"(kAt), "v"(w));
      add_tiles<C, P, K, T + 1>(acc, v, s, w);
    }
  }
};

class RowWinograd : public Winograd<Avx512RowWinograd> {
 public:
  static void run(const ConvArgs& a, const WinogradPlan& plan, const std::byte* prepared, std::byte* scratch,
                  Range rows, Range blocks) {
    run_as<RowWinograd>(a, plan, prepared, scratch, rows, blocks);
  }

 private:
  using Base = Winograd<Avx512RowWinograd>;
  friend Base;
  using Base::Base;

  // Layers whose outputs are not recovered at once, or are no codes, go the way of the others.
  void multiply(Range group) {
    if (!to_codes_) return Base::multiply(group);
    using MultiplyRow = void(const Avx512RowWinograd::Operands&);
    static constexpr MultiplyRow* kMultiplyRow[] = {
        Avx512RowWinograd::multiply_row<1>, Avx512RowWinograd::multiply_row<2>, Avx512RowWinograd::multiply_row<3>,
        Avx512RowWinograd::multiply_row<4>};
    const int64_t row_bytes = kRow * plan_.position_bytes, fetched = plan_.chunks * 16 * 64;  // by one product
    for (int64_t b = group.begin; b < group.end; ++b)
      for (int64_t y = 0; y < kRow; ++y) {
        const std::byte* u = u_ + b * plan_.block_bytes + y * row_bytes;
        for (int64_t p = 0; p < products_; ++p) {
          const Range range = product(p);
          const int64_t tiles = range.end - range.begin, step = v_position_bytes(tiles);
          kMultiplyRow[tiles - 1]({.v = v_of(range, p) + y * kRow * step,
                                   .u = u,
                                   .v_step = Steps(step),
                                   .u_step = Steps(plan_.position_bytes),
                                   .chunks = plan_.chunks,
                                   .start = y == 1 ? starts_ + b * kChannelBlock : nullptr,
                                   .m = sums_of(b - group.begin, range.begin) + y * kWinogradTile * kChannelBlock,
                                   .ahead = u + row_bytes + p * fetched % row_bytes});
        }
      }
  }
  void finish(Range group) {
    if (!to_codes_) return Base::finish(group);
    for (int64_t b = group.begin; b < group.end; ++b)
      for (int64_t i = 0; i < count_; ++i) recover_columns(sums_of(b - group.begin, i), tiles_[i], b * kChannelBlock);
  }

  uint32_t* sums_of(int64_t block, int64_t tile) const {
    return reinterpret_cast<uint32_t*>(m_) + (block * count_ + tile) * kTileSums;
  }
  __attribute__((noinline)) void recover_columns(const uint32_t* m, const TilePlace& t, int64_t channel) const {
    Sums lines[kWinogradTile][kWinogradTile];
#pragma GCC unroll 4
    for (int x = 0; x < kWinogradTile; ++x) {
      Sums column[kRow], y[kWinogradTile];
#pragma GCC unroll 6
      for (int i = 0; i < kRow; ++i) column[i] = load_vector<Sums>(m + (i * kWinogradTile + x) * kChannelBlock);
      transform_output(column, y);
#pragma GCC unroll 4
      for (int i = 0; i < kWinogradTile; ++i) lines[i][x] = y[i] * kRecovering;
    }
    uint8_t* out = codes_.at(t.n, t.y, t.x, channel);
#pragma GCC unroll 4
    for (int y = 0; y < kWinogradTile; ++y, out += codes_.row_stride()) {
      if (y >= t.height) break;
      codes_.store(lines[y], channel, out, t.width);
    }
  }
};

}  // namespace

const WinogradKernel row_winograd_avx512_vnni{Avx512RowWinograd::kBlocking, RowWinograd::prepare, RowWinograd::run};

}  // namespace octet::kernels
