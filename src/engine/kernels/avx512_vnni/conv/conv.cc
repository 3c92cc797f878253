// Row-run convolution with vpdpbusd: tiles of P pixels x V vectors of 16 output channels in registers.
#include "engine/kernels/avx512_vnni/functions.h"

#include "engine/kernels/avx512_vnni/codes_finish.h"
#include "engine/kernels/avx512_vnni/conv/row_runs.h"
#include "engine/kernels/avx512_vnni/finish.h"
#include "engine/kernels/avx512_vnni/vector.h"

namespace octet::kernels {
namespace {

template <int P, int V>
struct Multiplier {
  Z acc[P][V];
  int64_t s1, s3, s5, block;

  template <int D>
  OCTET_INLINE void dword(const uint8_t* low, const uint8_t* high, const int8_t* w) {
    Z weight[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) weight[v] = _mm512_load_si512(w + v * block + D * 64);
    add_dword<D>(acc, low, high, weight, s1, s3, s5);
  }

  template <bool kFetch>
  OCTET_INLINE void rows(const RowRuns& r, const uint8_t* in, const int8_t* w, const int8_t* ahead) {
    s1 = r.pixel_step;
    s3 = 3 * r.pixel_step;
    s5 = 5 * r.pixel_step;
    block = r.block_bytes;
    for (int64_t y = 0; y < r.kernel_rows; ++y, in += r.row_step) {
      const uint8_t* segment = in;
      for (int64_t s = 0; s < r.segments_per_row; ++s, segment += r.tap_step) {
        const uint8_t* low = segment;
        int64_t left = r.dwords;
        for (; left >= 4; left -= 4, low += 16, w += 4 * 64) {
          const uint8_t* high = low + 7 * s1;
          dword<0>(low, high, w);
          if constexpr (kFetch) __builtin_prefetch(ahead, 0, 2);
          dword<1>(low, high, w);
          if constexpr (kFetch) __builtin_prefetch(ahead + 64, 0, 2), ahead += 128;
          dword<2>(low, high, w);
          dword<3>(low, high, w);
        }
        for (; left > 0; --left, low += 4, w += 64) dword<0>(low, low + 7 * s1, w);
      }
    }
  }

  // ahead: weights to fetch meanwhile, or nullptr.
  OCTET_INLINE void run(const RowRuns& r, const uint8_t* in, const int8_t* w, const int8_t* ahead) {
    if (ahead) {
      rows<true>(r, in, w, ahead);
    } else {
      rows<false>(r, in, w, nullptr);
    }
  }
};

template <int P, int V>
void multiply(const RowRuns& r, const uint8_t* in, const int8_t* w, const int32_t* start, int32_t* acc_out,
              const int8_t* ahead) {
  Multiplier<P, V> m;
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const Z first = _mm512_load_si512(start + v * 16);
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) m.acc[p][v] = first;
  }
  m.run(r, in, w, ahead);
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) _mm512_store_si512(acc_out + (p * V + v) * 16, m.acc[p][v]);
}

template <Finish F, int P, int V>
void multiply_and_finish(const RowRuns& r, const uint8_t* in, const int8_t* w, const CodesFinish& f, uint8_t* out,
                         const int8_t* ahead) {
  Multiplier<P, V> m;
  // Loads, because copies of registers would take the ports of the products.
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      asm("vmovdqa64 %1, %0" : "=v"(m.acc[p][v]) : "m"(*reinterpret_cast<const Z*>(f.start + v * 16)));
  m.run(r, in, w, ahead);
  finish_in_registers<F>(m.acc, f, out);
}

using Multiply = void(const RowRuns&, const uint8_t*, const int8_t*, const int32_t*, int32_t*, const int8_t*);
using MultiplyAndFinish = void(const RowRuns&, const uint8_t*, const int8_t*, const CodesFinish&, uint8_t*,
                               const int8_t*);

constexpr int kMaxVectors = 4;
constexpr int64_t kMaxPixels[kMaxVectors + 1] = {0, 14, 14, 9, 6};
Multiply* const kMultiply[kMaxVectors + 1][15] = {
    {},
    {nullptr, multiply<1, 1>, multiply<2, 1>, multiply<3, 1>, multiply<4, 1>, multiply<5, 1>, multiply<6, 1>,
     multiply<7, 1>, multiply<8, 1>, multiply<9, 1>, multiply<10, 1>, multiply<11, 1>, multiply<12, 1>, multiply<13, 1>,
     multiply<14, 1>},
    {nullptr, multiply<1, 2>, multiply<2, 2>, multiply<3, 2>, multiply<4, 2>, multiply<5, 2>, multiply<6, 2>,
     multiply<7, 2>, multiply<8, 2>, multiply<9, 2>, multiply<10, 2>, multiply<11, 2>, multiply<12, 2>, multiply<13, 2>,
     multiply<14, 2>},
    {nullptr, multiply<1, 3>, multiply<2, 3>, multiply<3, 3>, multiply<4, 3>, multiply<5, 3>, multiply<6, 3>,
     multiply<7, 3>, multiply<8, 3>, multiply<9, 3>},
    {nullptr, multiply<1, 4>, multiply<2, 4>, multiply<3, 4>, multiply<4, 4>, multiply<5, 4>, multiply<6, 4>}};

template <Finish F>
constexpr MultiplyAndFinish* kMultiplyAndFinish[kMaxVectors + 1] = {
    nullptr, nullptr, multiply_and_finish<F, 14, 2>, multiply_and_finish<F, 9, 3>, multiply_and_finish<F, 6, 4>};

// Cycles for one dword of a tile: dot products and loads go two a cycle, a chain of dot products takes five each,
// weights come from the L2 cache.
double tile_cost(int64_t pixels, int vectors) {
  const double products = 0.5 * static_cast<double>(pixels) * vectors,
               loads = 0.5 * static_cast<double>(pixels + vectors);
  double cost = products > loads ? products : loads;
  const double weights = vectors * 64 / 40.0;
  if (cost < weights) cost = weights;
  return (cost < 5 ? 5 : cost) + 0.3;
}

// Cycles from 16 accumulators of a tile of so many vectors to their codes. Three vectors fill a store badly, and the
// halves of two pixels have to be taken apart.
struct FinishCost {
  double vectors[kMaxVectors + 1];
};
constexpr FinishCost kNoFinish{}, kCodes{{0, 4, 3.2, 3.8, 2.9}}, kSums{{0, 9, 7.1, 8.1, 6.4}};

// A line of `width` pixels is cut into the fewest tiles, as equal as possible. In cycles for each dword.
double line_cost(int64_t width, int vectors, double finish) {
  const int64_t tiles = (width + kMaxPixels[vectors] - 1) / kMaxPixels[vectors];
  const int64_t longer = width % tiles;
  return static_cast<double>(longer) * tile_cost(width / tiles + 1, vectors) +
         static_cast<double>(tiles - longer) * tile_cost(width / tiles, vectors) +
         static_cast<double>(width * vectors) * finish;
}

// Vectors per tile for lines of this width and this many blocks.
int choose_vectors(int64_t width, int64_t blocks, const FinishCost& finish, int64_t dwords) {
  const auto cost_of = [&](int vectors) {
    return line_cost(width, vectors, finish.vectors[vectors] / static_cast<double>(dwords));
  };
  int best = 1;
  double best_cost = 1e300;
  for (int v = kMaxVectors; v >= 1; --v) {
    double cost = static_cast<double>(blocks / v) * cost_of(v);
    if (blocks % v) cost += cost_of(static_cast<int>(blocks % v));
    if (cost < best_cost) best = v, best_cost = cost;
  }
  return best;
}

void finish_tile(int vectors, bool relu, const FinishTile& t, const Epilogue& e, const Constants& c) {
  switch (relu ? vectors + kMaxVectors : vectors) {
    case 1:
      return finish<1>(t, e, c);
    case 2:
      return finish<2>(t, e, c);
    case 3:
      return finish<3>(t, e, c);
    case 4:
      return finish<4>(t, e, c);
    case 1 + kMaxVectors:
      return finish_codes<1, Sum::kRelu, Numbers::kBounded>(t, e, c);
    case 2 + kMaxVectors:
      return finish_codes<2, Sum::kRelu, Numbers::kBounded>(t, e, c);
    case 3 + kMaxVectors:
      return finish_codes<3, Sum::kRelu, Numbers::kBounded>(t, e, c);
    default:
      return finish_codes<4, Sum::kRelu, Numbers::kBounded>(t, e, c);
  }
}

}  // namespace

void conv_avx512_vnni(const ConvArgs& a, Range rows, Range blocks) {
  const ConvGeometry& g = a.geometry;
  const ConvLayout l = conv_layout(g, a.in.c_pitch);
  conv_row_runs(a,
                {.first = a.in.data - g.pad_top * a.in.row_stride - g.pad_left * a.in.c_pitch,
                 .line_step = g.stride_h * a.in.row_stride,
                 .pixel_step = g.stride_w * a.in.c_pitch,
                 .kernel_rows = g.kernel_h,
                 .row_step = g.dilation_h * a.in.row_stride,
                 .segments_per_row = l.segments_per_row,
                 .tap_step = g.dilation_w * a.in.c_pitch,
                 .dwords = run_dwords(g, l),
                 .weights = a.weights,
                 .block_bytes = l.segments * l.dwords * 64},
                rows, blocks);
}

void conv_row_runs(const ConvArgs& a, const RowRuns& r, Range rows, Range blocks) {
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const int64_t all_dwords = r.block_bytes / 64;
  const bool flat = is_one_line(a);
  const int64_t width = flat ? (rows.end - rows.begin) * e.out.w : e.out.w;
  const int64_t lines = flat ? 1 : rows.end - rows.begin;
  // Grouped blocks read different input channels, and a 4-byte pixel has room for one block only.
  const bool single = g.groups > 1 || (e.out.data && e.out.c_pitch < 16);
  const Constants constants = make_constants(e);
  const bool relu = relu_shortcut(a, all_dwords * 4);
  const bool codes_only = relu || (has_codes_finish(e) && !single);
  static constexpr MultiplyAndFinish* const* kByFinish[kFinishes] = {
      kMultiplyAndFinish<Finish::kRelu>,  kMultiplyAndFinish<Finish::kPlain>,   kMultiplyAndFinish<Finish::kAllCodes>,
      kMultiplyAndFinish<Finish::kAny>,   kMultiplyAndFinish<Finish::kTable>,   kMultiplyAndFinish<Finish::kShortLines>,
      kMultiplyAndFinish<Finish::kLines>, kMultiplyAndFinish<Finish::kFunction>};
  const Finish way = choose_finish(relu, e, constants);
  MultiplyAndFinish* const* const multiply_and_finish = kByFinish[static_cast<int>(way)];
  // With more products the finish hardly counts, and wide tiles of weights that come from afar lose what it gains.
  const bool short_sums = all_dwords <= 32;
  const FinishCost& finish_cost = relu || !short_sums ? kNoFinish : e.residual.data ? kSums : kCodes;
  const int chosen = single ? 1 : choose_vectors(width, blocks.end - blocks.begin, finish_cost, all_dwords);
  CodesFinish finish;
  finish.constants = constants;
  finish.out_pixel = e.out.c_pitch;
  alignas(64) int32_t acc[28 * 16];

  for (int64_t b = blocks.begin; b < blocks.end;) {
    const int vectors = static_cast<int>(smaller(chosen, blocks.end - b));
    const int64_t tiles = (width + kMaxPixels[vectors] - 1) / kMaxPixels[vectors];
    const int64_t size = width / tiles, longer = width % tiles;
    // Codes in registers need whole tiles, so that pixels are repeated; the other way through memory takes about two
    // and a half cycles more for each vector, as long as five dwords of its products.
    const int64_t repeated = tiles * kMaxPixels[vectors] - width;
    const bool in_registers =
        codes_only && vectors > 1 && width >= kMaxPixels[vectors] && repeated * all_dwords <= 5 * width;
    set_channels(finish, a, b, vectors, in_registers || relu ? way : Finish::kAny);
    const int8_t* weights = r.weights + b * r.block_bytes;
    const bool last = b + vectors >= blocks.end;
    const int8_t* const fetch_begin =
        last ? reinterpret_cast<const int8_t*>(a.soon.data) : weights + vectors * r.block_bytes;
    const int8_t* const fetch_end =
        last ? fetch_begin + a.soon.bytes : r.weights + smaller(b + 2 * vectors, blocks.end) * r.block_bytes;
    // Weights of deep layers come from beyond the L2 cache: the tiles of a group fetch those of the next group, and of
    // the next convolution, two cache lines for four dwords of products.
    const int8_t* ahead = nullptr;
    const int64_t fetched = r.kernel_rows * r.segments_per_row * (r.dwords / 4) * 128;  // by one tile
    // Some fetches come to nothing where many are under way; a group of few tiles, whose weights are needed soon after,
    // repeats them as long as there are tiles.
    const int8_t* const again = tiles * lines < 12 && fetch_begin < fetch_end ? fetch_begin : nullptr;
    const auto fetch = [&](const int8_t* from) { ahead = from < fetch_end ? from : again; };
    fetch(fetch_begin);
    const uint8_t* channel = r.first + block_channel_offset(g, b);
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t n = (rows.begin + line) / e.out.h, y = (rows.begin + line) % e.out.h;
      const uint8_t* in = channel + n * a.in.image_stride + (y - r.first_line) * r.line_step;
      if (in_registers) {  // the last tile may repeat pixels of the one before
        uint8_t* out = e.out.data + n * e.out.image_stride + y * e.out.row_stride + b * 16;
        for (int64_t x = 0; x < width; x += kMaxPixels[vectors]) {
          const int64_t first = smaller(x, width - kMaxPixels[vectors]);
          multiply_and_finish[vectors](r, in + first * r.pixel_step, weights, finish, out + first * e.out.c_pitch,
                                       ahead);
          if (ahead) fetch(ahead + fetched);
        }
        continue;
      }
      for (int64_t t = 0, x = 0; t < tiles; ++t) {
        const int64_t pixels = size + (t < longer);
        kMultiply[vectors][pixels](r, in + x * r.pixel_step, weights, finish.start, acc, ahead);
        if (ahead) fetch(ahead + fetched);
        finish_tile(vectors, relu, {acc, pixels, b * 16, n, y, x}, e, constants);
        x += pixels;
      }
    }
    b += vectors;
  }
}

}  // namespace octet::kernels
