// 1x1 convolutions: the finish of one tile runs between the products of the next.
//
// With few products for each sum a residual and two roundings take a third of the time. Processors overlap products and
// finish only as far as they look ahead, and half as far where another thread shares the core. Tiles a pixel smaller
// than those of "direct" leave registers to finish a pixel of the tile before with every four dwords of products.
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/register_finish.h"
#include "engine/kernels/avx512_vnni/row_runs.h"

namespace octet::kernels {
namespace {

constexpr int kPixels = 5, kVectors = 4;  // of a tile; vectors of 16 output channels
constexpr int64_t kTileChannels = kVectors * kChannelBlock;
constexpr int64_t kDwordsAtOnce = 4;  // a pixel has a multiple of them
// With more the finish hardly counts, and the weights of a tile leave the L1 cache.
constexpr int64_t kMaxDwords = 128;

// The sums of a tile and what finishes them.
struct alignas(64) TileFinish {
  int32_t sums[kPixels][kTileChannels];
  int32_t start[kTileChannels];
  RegisterFinish codes;
  int64_t out_step = 0, residual_step = 0;  // bytes from one pixel to the next
};

// Finishes one pixel, in steps that products of the next tile come between: for each vector begin(), and once its
// result is there complete(); after all of them pack(), and at last store().
template <Sum S, Residual R>
struct PixelFinish {
  Z values[kVectors];

  template <int N>
  OCTET_INLINE void begin(const TileFinish& f, const int32_t* sums) {
    values[N] = scaled(sums + N * 16, f.codes.multiplier + N * 16);
    if constexpr (S != Sum::kNone) round_middle(values[N], f.codes);
  }
  template <int N>
  OCTET_INLINE void complete(const TileFinish& f, const uint8_t* residual) {
    if constexpr (S != Sum::kNone)
      add_residual<S == Sum::kTwiceFused>(values[N], scaled_residual<R>(residual + N * 16, f.codes), f.codes);
    round(values[N]);
  }
  OCTET_INLINE void pack() {
    pack_words(values[0], values[1]);
    pack_words(values[2], values[3]);
  }
  OCTET_INLINE void store(const TileFinish& f, uint8_t* out) {
    pack_codes<S != Sum::kNone>(values[0], values[2], f.codes);
    asm volatile("vmovdqu64 %[a], (%[out])" : : [a] "v"(values[0]), [out] "r"(out) : "memory");
  }
};

struct Products {
  Z acc[kPixels][kVectors];
  int64_t s1, s3, block;

  template <int D>
  OCTET_INLINE void dword(const uint8_t* in, const int8_t* w) {
    Z weight[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) weight[v] = _mm512_load_si512(w + v * block + D * 64);
    add_dword<D>(acc, in, nullptr, weight, s1, s3, 0);  // fewer than six pixels
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
template <typename Pixel>
struct Unfinished {
  const TileFinish& finish;
  int64_t count = 0;
  const int32_t* sums = nullptr;  // of the next one
  const uint8_t* residual = nullptr;
  uint8_t* out = nullptr;

  OCTET_INLINE void next() {
    Pixel pixel;
    pixel.template begin<0>(finish, sums);
    pixel.template begin<1>(finish, sums);
    pixel.template begin<2>(finish, sums);
    pixel.template begin<3>(finish, sums);
    pixel.template complete<0>(finish, residual);
    pixel.template complete<1>(finish, residual);
    pixel.template complete<2>(finish, residual);
    pixel.template complete<3>(finish, residual);
    pixel.pack();
    pixel.store(finish, out);
    sums += kTileChannels, residual += finish.residual_step, out += finish.out_step;
    --count;
  }
  // Step S of finishing all pixels of a tile, kSteps for each.
  static constexpr int kSteps = 9;
  template <int S>
  OCTET_INLINE void step(Pixel (&pixels)[2]) {
    constexpr int kPixel = S / kSteps;
    Pixel &now = pixels[kPixel % 2], &before = pixels[1 - kPixel % 2];
    const int32_t* const own = sums + kPixel * kTileChannels;
    constexpr int kStep = S % kSteps;
    if constexpr (kStep == 0) now.template begin<0>(finish, own);
    if constexpr (kStep == 1 && kPixel > 0) before.store(finish, out), out += finish.out_step;
    if constexpr (kStep == 2) now.template begin<1>(finish, own);
    if constexpr (kStep == 3) now.template begin<2>(finish, own);
    if constexpr (kStep == 4) {
      now.template complete<0>(finish, residual);
      __builtin_prefetch(out + (kPixels + 1) * finish.out_step, 1);  // of the next tile
    }
    if constexpr (kStep == 5) now.template begin<3>(finish, own);
    if constexpr (kStep == 6) now.template complete<1>(finish, residual);
    if constexpr (kStep == 7) now.template complete<2>(finish, residual);
    if constexpr (kStep == 8) {
      now.template complete<3>(finish, residual);
      now.pack();
      residual += finish.residual_step;
    }
  }
  template <int S, int End>
  OCTET_INLINE void steps(Pixel (&pixels)[2]) {
    if constexpr (S < End) {
      step<S>(pixels);
      steps<S + 1, End>(pixels);
    }
  }
  OCTET_INLINE void last(Pixel (&pixels)[2]) {
    pixels[(kPixels - 1) % 2].store(finish, out);
    count = 0;
  }
};

// Sixteen dwords of products, and the finish of a whole tile evenly between them.
template <int D, typename Pixel>
OCTET_INLINE void sixteen_dwords(Products& m, const uint8_t* in, const int8_t* w, const int8_t* ahead,
                                 Unfinished<Pixel>& before, Pixel (&pixels)[2]) {
  if constexpr (D < 16) {
    constexpr int kAll = kPixels * Unfinished<Pixel>::kSteps;
    m.dword<D>(in, w);
    before.template steps<kAll * D / 16, kAll*(D + 1) / 16>(pixels);
    if constexpr (D % 2 == 0) __builtin_prefetch(ahead + D * 32, 0, 2);
    sixteen_dwords<D + 1>(m, in, w, ahead, before, pixels);
  }
}

template <bool kSixteen, typename Pixel>
void run_line(const RowRuns& r, TileFinish& f, Line& line) {
  Products m;
  m.s1 = r.pixel_step, m.s3 = 3 * r.pixel_step, m.block = r.block_bytes;
  Unfinished<Pixel> before{f};
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
    Pixel pixels[2];
    if (kSixteen && before.count > 0) {
      sixteen_dwords<0>(m, in, w, ahead, before, pixels);
      before.last(pixels);
      ahead += 4 * 128;
      left = 0;
    }
    while (before.count > left) before.next();
    for (; before.count > 0; --left) {
      Pixel& pixel = pixels[0];
      m.dword<0>(in, w);
      pixel.template begin<0>(f, before.sums);
      pixel.template begin<1>(f, before.sums);
      __builtin_prefetch(ahead, 0, 2);
      m.dword<1>(in, w);
      pixel.template begin<2>(f, before.sums);
      pixel.template complete<0>(f, before.residual);
      __builtin_prefetch(ahead + 64, 0, 2);
      m.dword<2>(in, w);
      pixel.template begin<3>(f, before.sums);
      pixel.template complete<1>(f, before.residual);
      m.dword<3>(in, w);
      pixel.template complete<2>(f, before.residual);
      pixel.template complete<3>(f, before.residual);
      pixel.pack();
      pixel.store(f, before.out);
      before.sums += kTileChannels, before.residual += f.residual_step, before.out += f.out_step;
      --before.count;
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

using RunLine = void(const RowRuns&, TileFinish&, Line&);

template <bool kSixteen, Sum S>
RunLine* line_of(Residual residual) {
  switch (residual) {
    case Residual::kWidened:
      return run_line<kSixteen, PixelFinish<S, Residual::kWidened>>;
    case Residual::kWidenedNoZeroPoint:
      return run_line<kSixteen, PixelFinish<S, Residual::kWidenedNoZeroPoint>>;
    case Residual::kOnTwo23:
      return run_line<kSixteen, PixelFinish<S, Residual::kOnTwo23>>;
    default:
      return run_line<kSixteen, PixelFinish<S, Residual::kOnTwo23NoZeroPoint>>;
  }
}
template <bool kSixteen>
RunLine* line_of(const Epilogue& e) {
  if (e.residual.data == nullptr) return run_line<kSixteen, PixelFinish<Sum::kNone, Residual::kWidened>>;
  const Residual residual = fastest_residual(e);
  return e.sum_fuses ? line_of<kSixteen, Sum::kTwiceFused>(residual) : line_of<kSixteen, Sum::kTwice>(residual);
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
  const RowRuns r{.first = a.in.data,
                  .line_step = g.stride_h * a.in.row_stride,
                  .pixel_step = g.stride_w * a.in.c_pitch,
                  .dwords = l.dwords,
                  .weights = a.weights,
                  .block_bytes = l.segments * l.dwords * 64};
  TileFinish f;
  f.codes = make_register_finish(e);
  f.out_step = e.out.c_pitch, f.residual_step = e.residual.c_pitch;
  RunLine* const run_pixels = r.dwords == 16 ? line_of<true>(e) : line_of<false>(e);
  const bool flat = is_one_line(a);
  const int64_t lines = flat ? 1 : rows.end - rows.begin;
  int64_t b = blocks.begin;
  for (; b + kVectors <= blocks.end; b += kVectors) {
    for (int v = 0; v < kVectors; ++v) {
      _mm512_store_si512(f.start + v * 16, _mm512_loadu_si512(a.acc_init + (b + v) * 16));
      _mm512_store_ps(f.codes.multiplier + v * 16, _mm512_loadu_ps(e.multiplier + (b + v) * 16));
    }
    Line line;
    line.weights = r.weights + b * r.block_bytes;
    line.ahead = line.weights + kVectors * r.block_bytes;
    line.ahead_end = r.weights + smaller(b + 2 * kVectors, blocks.end) * r.block_bytes;
    if (line.ahead >= line.ahead_end && a.soon.bytes)
      line.ahead = reinterpret_cast<const int8_t*>(a.soon.data), line.ahead_end = line.ahead + a.soon.bytes;
    if (line.ahead >= line.ahead_end) line.ahead = line.weights;
    line.pixels = flat ? (rows.end - rows.begin) * e.out.w : e.out.w;
    for (int64_t i = 0; i < lines; ++i) {
      const int64_t n = (rows.begin + i) / e.out.h, y = (rows.begin + i) % e.out.h;
      line.in = r.first + n * a.in.image_stride + y * r.line_step;
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
  return {.name = "overlapped",
          .isa = Isa::kAvx512Vnni,
          .applies = applies,
          .run = run,
          .fetches_ahead = true,
          .cost = cost};
}

}  // namespace octet::kernels
