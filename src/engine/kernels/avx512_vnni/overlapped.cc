// 1x1 convolutions: the finish of one tile runs between the products of the next.
//
// With few products for each sum a residual and two roundings take a third of the time. Processors overlap products and
// finish only as far as they look ahead, and half as far where another thread shares the core. Tiles a pixel smaller
// than those of "direct" leave registers to finish a pixel of the tile before with every four dwords of products.
#include "engine/kernels/avx512_vnni/finish.h"
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/row_runs.h"

namespace octet::kernels {
namespace {

constexpr int kPixels = 5, kVectors = 4;  // of a tile; vectors of 16 output channels
constexpr int64_t kTileChannels = kVectors * kChannelBlock;
constexpr int64_t kDwordsAtOnce = 4;
// With more the finish hardly counts, and the weights of a tile leave the L1 cache.
constexpr int64_t kMaxDwords = 128;

struct Runs {
  int64_t pixel_step = 0;   // input bytes from one output pixel to the next
  int64_t dwords = 0;       // of a pixel, a multiple of kDwordsAtOnce
  int64_t block_bytes = 0;  // of packed weights
};

// How a sum is finished: as finish.h does with bounded numbers, and with a residual to codes 0..255 with zero point 0.
// kResidualZero: the residual's zero point is 0.
template <Sum S, bool kResidualZero = false>
struct Finish {
  static constexpr Sum sum = S;
  static constexpr bool residual_zero = kResidualZero;
};

// The sums of a tile and what finishes them.
struct alignas(64) TileFinish {
  int32_t sums[kPixels][kTileChannels];
  int32_t start[kTileChannels];
  float multiplier[kTileChannels];
  Constants constants;
  Z two23, places, order;
  int64_t out_step = 0, residual_step = 0;  // bytes from one pixel to the next
};

// Finishes one pixel: four parts in any order, then end(). By hand, because the compiler would keep constants in
// registers and spill sums of the tile in work.
template <typename F>
struct PixelFinish {
  Z values[kVectors];

  template <int N>
  OCTET_INLINE void part(const TileFinish& f, const int32_t* sums, const uint8_t* residual, __mmask64 low_bytes) {
    const Constants& c = f.constants;
    Z& v = values[N];
    if constexpr (F::sum == Sum::kNone) {
      asm volatile(
          "vcvtdq2ps %c[sum](%[sums]), %[v]\n\t"
          "vmulps %[multiplier], %[v], %[v]\n\t"
          "vcvtps2dq %[v], %[v]"
          : [v] "=&v"(v)
          : [sums] "r"(sums), [sum] "i"(N * 64), [multiplier] "m"(*reinterpret_cast<const Z*>(f.multiplier + N * 16))
          : "memory");
      return;
    }
    Z r, t;
    asm volatile(
        "vcvtdq2ps %c[sum](%[sums]), %[v]\n\t"
        "vmulps %[multiplier], %[v], %[v]\n\t"
        "vrndscaleps $8, %[v], %[v]\n\t"
        "vmaxps %[low], %[v], %[v]\n\t"
        "vminps %[high], %[v], %[v]\n\t"
        "vbroadcasti32x4 %c[code](%[residual]), %[t]\n\t"
        "vmovdqa64 %[two23], %[r]\n\t"
        "vpshufb %[places], %[t], %[r]%{%[low_bytes]%}"
        : [v] "=&v"(v), [r] "=&v"(r), [t] "=&v"(t)
        : [sums] "r"(sums), [sum] "i"(N * 64), [residual] "r"(residual), [code] "i"(N * 16),
          [multiplier] "m"(*reinterpret_cast<const Z*>(f.multiplier + N * 16)), [low] "m"(c.mid_low),
          [high] "m"(c.mid_high), [two23] "m"(f.two23), [places] "m"(f.places), [low_bytes] "Yk"(low_bytes)
        : "memory");
    if constexpr (F::residual_zero) {
      asm volatile(
          "vmovaps %[correction], %[t]\n\t"
          "vfmadd132ps %[multiplier], %[t], %[r]"
          : [r] "+v"(r), [t] "=&v"(t)
          : [correction] "m"(c.residual_correction), [multiplier] "m"(c.residual_multiplier));
    } else {
      asm volatile(
          "vsubps %[start], %[r], %[r]\n\t"
          "vmulps %[multiplier], %[r], %[r]"
          : [r] "+v"(r)
          : [start] "m"(c.residual_start), [multiplier] "m"(c.residual_multiplier));
    }
    if constexpr (F::sum == Sum::kTwiceFused) {
      asm volatile(
          "vfmadd132ps %[multiplier], %[r], %[v]\n\t"
          "vcvtps2dq %[v], %[v]"
          : [v] "+v"(v)
          : [r] "v"(r), [multiplier] "m"(c.mid_multiplier));
    } else {
      asm volatile(
          "vmulps %[multiplier], %[v], %[v]\n\t"
          "vaddps %[r], %[v], %[v]\n\t"
          "vcvtps2dq %[v], %[v]"
          : [v] "+v"(v)
          : [r] "v"(r), [multiplier] "m"(c.mid_multiplier));
    }
  }
  OCTET_INLINE void end(const TileFinish& f, uint8_t* out) {
    asm volatile(
        "vpackssdw %[b], %[a], %[a]\n\t"
        "vpackssdw %[d], %[c], %[c]"
        : [a] "+v"(values[0]), [c] "+v"(values[2])
        : [b] "v"(values[1]), [d] "v"(values[3]));
    if constexpr (F::sum == Sum::kNone)
      asm volatile(
          "vpaddsw %[zero_point], %[a], %[a]\n\t"
          "vpaddsw %[zero_point], %[c], %[c]"
          : [a] "+v"(values[0]), [c] "+v"(values[2])
          : [zero_point] "m"(f.constants.zero_point16));
    asm volatile(
        "vpackuswb %[c], %[a], %[a]\n\t"
        "vmovdqa64 %[order], %[c]\n\t"
        "vpermd %[a], %[c], %[a]"
        : [a] "+v"(values[0]), [c] "+v"(values[2])
        : [order] "m"(f.order));
    if constexpr (F::sum == Sum::kNone)
      asm volatile(
          "vpmaxub %[low], %[a], %[a]\n\t"
          "vpminub %[high], %[a], %[a]"
          : [a] "+v"(values[0])
          : [low] "m"(f.constants.low8), [high] "m"(f.constants.high8));
    asm volatile("vmovdqu64 %[a], (%[out])" : : [a] "v"(values[0]), [out] "r"(out) : "memory");
  }
};

struct Products {
  Z acc[kPixels][kVectors];
  int64_t s1, s3, block;

  template <int I, int D>
  OCTET_INLINE void pixel(const uint8_t* in, const Z (&weight)[kVectors]) {
    const Z b = broadcast<I, D>(in, s1, s3, 0);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc[I][v] = _mm512_dpbusd_epi32(acc[I][v], b, weight[v]);
    if constexpr (I + 1 < kPixels) pixel<I + 1, D>(in, weight);
  }
  template <int D>
  OCTET_INLINE void dword(const uint8_t* in, const int8_t* w) {
    Z weight[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) weight[v] = _mm512_load_si512(w + v * block + D * 64);
    pixel<0, D>(in, weight);
  }
};

// A line of pixels, all of them at least a tile, by 64 output channels.
struct Line {
  const uint8_t* in = nullptr;
  const uint8_t* residual = nullptr;
  uint8_t* out = nullptr;
  int64_t pixels = 0;
  const int8_t* weights = nullptr;
  const int8_t *ahead = nullptr, *ahead_end = nullptr;  // weights to fetch meanwhile
};

// The pixels of a tile that are not finished.
template <typename F>
struct Unfinished {
  const TileFinish& finish;
  int64_t count = 0;
  const int32_t* sums = nullptr;  // of the next one
  const uint8_t* residual = nullptr;
  uint8_t* out = nullptr;
  __mmask64 low_bytes = 0x1111111111111111;

  template <int N>
  OCTET_INLINE void part(PixelFinish<F>& pixel) {
    pixel.template part<N>(finish, sums, residual, low_bytes);
  }
  OCTET_INLINE void end(PixelFinish<F>& pixel) {
    pixel.end(finish, out);
    sums += kTileChannels, residual += finish.residual_step, out += finish.out_step;
    --count;
  }
  OCTET_INLINE void next() {
    PixelFinish<F> pixel;
    part<0>(pixel);
    part<1>(pixel);
    part<2>(pixel);
    part<3>(pixel);
    end(pixel);
  }
};

template <typename F>
void run_line(const Runs& r, TileFinish& f, Line& line) {
  Products m;
  m.s1 = r.pixel_step, m.s3 = 3 * r.pixel_step, m.block = r.block_bytes;
  Unfinished<F> before{f};
  for (int64_t x = 0; x < line.pixels; x += kPixels) {
    const int64_t first = smaller(x, line.pixels - kPixels);  // the last tile may repeat pixels of the one before
    // Loads, because copies of registers would take the ports of the products.
#pragma GCC unroll 5
    for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        asm("vmovdqa64 %1, %0" : "=v"(m.acc[p][v]) : "m"(*reinterpret_cast<const Z*>(f.start + v * 16)));
    const uint8_t* in = line.in + first * r.pixel_step;
    const int8_t *w = line.weights, *ahead = line.ahead;
    const auto next_dwords = [&]() __attribute__((always_inline)) {
      in += 16, w += 256, ahead += 128;
    };
    int64_t left = r.dwords / kDwordsAtOnce;
    while (before.count > left) before.next();
    for (; before.count > 0; --left) {
      PixelFinish<F> pixel;
      m.dword<0>(in, w);
      before.template part<0>(pixel);
      __builtin_prefetch(ahead, 0, 2);
      m.dword<1>(in, w);
      before.template part<1>(pixel);
      __builtin_prefetch(ahead + 64, 0, 2);
      m.dword<2>(in, w);
      before.template part<2>(pixel);
      m.dword<3>(in, w);
      before.template part<3>(pixel);
      before.end(pixel);
      next_dwords();
    }
    for (; left > 0; --left) {
      m.dword<0>(in, w);
      __builtin_prefetch(ahead, 0, 2);
      m.dword<1>(in, w);
      __builtin_prefetch(ahead + 64, 0, 2);
      m.dword<2>(in, w);
      m.dword<3>(in, w);
      next_dwords();
    }
    if (ahead < line.ahead_end) line.ahead = ahead;
#pragma GCC unroll 5
    for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) _mm512_store_si512(f.sums[p] + v * 16, m.acc[p][v]);
    before.count = kPixels, before.sums = f.sums[0];
    before.residual = line.residual + first * f.residual_step, before.out = line.out + first * f.out_step;
  }
  while (before.count > 0) before.next();
}

using RunLine = void(const Runs&, TileFinish&, Line&);
RunLine* line_of(const Epilogue& e) {
  if (e.residual.data == nullptr) return run_line<Finish<Sum::kNone>>;
  const bool zero = e.residual.zero_point == 0;
  if (e.sum_fuses) return zero ? run_line<Finish<Sum::kTwiceFused, true>> : run_line<Finish<Sum::kTwiceFused>>;
  return zero ? run_line<Finish<Sum::kTwice, true>> : run_line<Finish<Sum::kTwice>>;
}

bool finish_applies(const ConvArgs& a) {
  const Epilogue& e = a.epilogue;
  if (e.out.data == nullptr || e.table || !sums_are_bounded(e)) return false;
  if (e.residual.data == nullptr) return !relu_shortcut(a, pixel_bytes(a.geometry));
  return e.rounds_twice && e.out.zero_point == 0 && e.lo == 0 && e.hi == 255;
}

bool applies(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  return g.kernel_h == 1 && g.kernel_w == 1 && g.groups == 1 && g.pad_top == 0 && g.pad_left == 0 &&
         padded_channels(g.out_channels) >= kTileChannels && pixel_bytes(g) % (4 * kDwordsAtOnce) == 0 &&
         pixel_bytes(g) <= 4 * kMaxDwords && a.epilogue.out.w >= kPixels && finish_applies(a);
}

void run(const ConvArgs& a, Range rows, Range blocks) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  const ConvLayout l = conv_layout(g, a.in.c_pitch);
  const Runs r{g.stride_w * a.in.c_pitch, l.dwords, l.segments * l.dwords * 64};
  TileFinish f;
  f.constants = make_constants(e);
  f.two23 = _mm512_set1_epi32(kBitsOfTwo23);
  f.places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  f.order = pack_order();
  f.out_step = e.out.c_pitch, f.residual_step = e.residual.c_pitch;
  RunLine* const run_pixels = line_of(e);
  const bool flat = is_one_line(a);
  const int64_t lines = flat ? 1 : rows.end - rows.begin;
  int64_t b = blocks.begin;
  for (; b + kVectors <= blocks.end; b += kVectors) {
    for (int v = 0; v < kVectors; ++v) {
      _mm512_store_si512(f.start + v * 16, _mm512_loadu_si512(a.acc_init + (b + v) * 16));
      _mm512_store_ps(f.multiplier + v * 16, _mm512_loadu_ps(e.multiplier + (b + v) * 16));
    }
    Line line;
    line.weights = a.weights + b * r.block_bytes;
    line.ahead = line.weights + kVectors * r.block_bytes;
    line.ahead_end = a.weights + smaller(b + 2 * kVectors, blocks.end) * r.block_bytes;
    if (line.ahead >= line.ahead_end) line.ahead = line.weights;
    line.pixels = flat ? (rows.end - rows.begin) * e.out.w : e.out.w;
    for (int64_t i = 0; i < lines; ++i) {
      const int64_t n = (rows.begin + i) / e.out.h, y = (rows.begin + i) % e.out.h;
      line.in = a.in.data + n * a.in.image_stride + y * g.stride_h * a.in.row_stride;
      line.out = e.out.data + n * e.out.image_stride + y * e.out.row_stride + b * kChannelBlock;
      if (e.residual.data)
        line.residual = e.residual.data + n * e.residual.image_stride + y * e.residual.row_stride + b * kChannelBlock;
      run_pixels(r, f, line);
    }
  }
  conv_avx512_vnni(a, rows, {b, blocks.end});
}

// As that of "direct", with less for the finish, but for whole tiles.
double cost(const ConvArgs& a, int threads) {
  const QTensor& out = a.epilogue.out;
  const int64_t width = is_one_line(a) ? out.n * out.h * out.w : out.w;
  const double whole = static_cast<double>((width + kPixels - 1) / kPixels * kPixels) / static_cast<double>(width);
  const double vectors = static_cast<double>(out.n * out.h * out.w * padded_channels(out.c)) / kChannelBlock;
  const double finish = a.epilogue.residual.data ? 5 : 2.5;  // cycles
  return 0.7 + whole * (cost_at_rate(a, threads, 105) + vectors * finish / (3500.0 * threads));
}

}  // namespace

ConvTactic overlapped_tactic() {
  return {.name = "overlapped", .isa = Isa::kAvx512Vnni, .applies = applies, .run = run, .cost = cost};
}

}  // namespace octet::kernels
