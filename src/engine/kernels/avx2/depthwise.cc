// Depthwise convolution with 256-bit vectors, 16 channels at a time. vpmaddwd multiplies two taps: here two rows of the
// image, which are widened to words and interleaved once into a *strip* of all columns and then serve every tap of a
// column. With stride 1 a step makes two output rows from the same strips; the next step, as with stride 2, is one pair
// of rows further down, so only one strip is new.
//   strip: [column][channels 0-3 8-11 | 4-7 12-15][2 rows], in-lane unpacks leave the channels so
#include "engine/kernels/avx2/depthwise_walks.h"
#include "engine/kernels/avx2/finish.h"
#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/avx2/vector.h"

namespace octet::kernels {
namespace {

constexpr int64_t kStripBytes = 32 * 1024;  // of all strips
constexpr int64_t kMaxPairs = 64;           // kernel_w x pairs of rows; larger kernels are left to the scalar code
constexpr int kTilePixels = 6;              // 12 sums, two weights, one input, one product: all 16 registers

struct Strips {
  const Y* const* strips;             // of each pair of rows, at the first column of the tile
  int64_t pairs, kernel_w, tap_step;  // steps in vectors, two for a column
  const Y* weights;                   // [pair][kernel_w][half][row], or [pair][kernel_w][half]
  const Y* start;                     // [half]
  // Where the sums are finished at once:
  const Finish* finish;
  const Y* multiplier;  // [half]
  uint8_t* out[2];      // of each output row; the second may be missing
  int64_t out_step;     // bytes from pixel to pixel
};

// Codes of two pixels in each vector -> memory.
template <int P>
OCTET_INLINE void store_codes_of_row(const Strips& s, Y* codes, uint8_t* out) {
  if (s.finish->has_table()) s.finish->look_up(codes, (P + 1) / 2);
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p)
    store16(out + p * s.out_step,
            p % 2 ? _mm256_extracti128_si256(codes[p / 2], 1) : _mm256_castsi256_si128(codes[p / 2]));
}

// What becomes of the sums: [row][pixel][half] in memory, or codes from registers, by relu_shortcut() or not.
enum class End { kSums, kCodes, kReluCodes };

// P pixels of two output rows, or of one.
template <int P, bool kTwoRows, int kStep, End kEnd>
void multiply_strips(const Strips& s, Y* sums) {
  constexpr int kPairs = (P + 1) / 2;
  Y words[2][2][kPairs];  // [row][half]: two pixels each
#pragma GCC unroll 1
  for (int half = 0; half < (kTwoRows ? 2 : 1); ++half) {
    Y sum[P][2];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) sum[p][0] = s.start[half], sum[p][1] = s.start[kTwoRows ? half : 1];
    const Y* w = s.weights + 2 * half;
    for (int64_t k = 0; k < s.pairs; ++k) {
      const Y* column = s.strips[k] + half;
      for (int64_t x = 0; x < s.kernel_w; ++x, column += s.tap_step, w += kTwoRows ? 4 : 2) {
        const Y w0 = w[0], w1 = w[1];
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) {
          Y first = load32(column + p * kStep);
          asm("" : "+x"(first));  // loaded once: as an operand in memory it would be loaded by both products
          const Y second = kTwoRows ? first : load32(column + p * kStep + 1);
          sum[p][0] = _mm256_add_epi32(sum[p][0], _mm256_madd_epi16(first, w0));
          sum[p][1] = _mm256_add_epi32(sum[p][1], _mm256_madd_epi16(second, w1));
        }
      }
    }
    if constexpr (kEnd == End::kSums) {
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        sums[p * 2 + half] = sum[p][0];
        sums[kTwoRows ? (P + p) * 2 + half : p * 2 + 1] = sum[p][1];
      }
    } else {
      const auto scaled = [&](Y acc, int h) __attribute__((always_inline)) {
        if constexpr (kEnd == End::kReluCodes) return Finish::relu_value(acc, _mm256_castsi256_ps(s.multiplier[h]));
        return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(acc), _mm256_castsi256_ps(s.multiplier[h])));
      };
#pragma GCC unroll 4
      for (int i = 0; i < kPairs; ++i) {
        const int p = 2 * i, q = p + 1 < P ? p + 1 : p;
        const auto words_of = [&](Y a, Y b) __attribute__((always_inline)) {
          return kEnd == End::kReluCodes ? _mm256_packs_epi32(a, b) : s.finish->limits().words(a, b);
        };
        const int second = kTwoRows ? half : 1;
        words[0][half][i] = words_of(scaled(sum[p][0], half), scaled(sum[q][0], half));
        words[kTwoRows ? 1 : 0][second][i] = words_of(scaled(sum[p][1], second), scaled(sum[q][1], second));
      }
    }
  }
  if constexpr (kEnd != End::kSums) {
    for (int row = 0; row < (kTwoRows && s.out[1] ? 2 : 1); ++row) {
      Y codes[kPairs];
#pragma GCC unroll 4
      for (int i = 0; i < kPairs; ++i) {
        const Y ac = words[row][0][i], bd = words[row][1][i];
        codes[i] = kEnd == End::kReluCodes
                       ? s.finish->limits().below(Limits::pack_words_only(ac, bd))
                       : _mm256_permutevar8x32_epi32(s.finish->pack_words(ac, bd), Limits::words_order());
      }
      store_codes_of_row<P>(s, codes, s.out[row]);
    }
  }
}

using TileFunction = void(const Strips& s, Y* sums);
template <bool kTwoRows, int kStep, End kEnd>
constexpr TileFunction* kTiles[kTilePixels + 1] = {nullptr,
                                                   multiply_strips<1, kTwoRows, kStep, kEnd>,
                                                   multiply_strips<2, kTwoRows, kStep, kEnd>,
                                                   multiply_strips<3, kTwoRows, kStep, kEnd>,
                                                   multiply_strips<4, kTwoRows, kStep, kEnd>,
                                                   multiply_strips<5, kTwoRows, kStep, kEnd>,
                                                   multiply_strips<6, kTwoRows, kStep, kEnd>};

// By number of pixels, for strides along the width of 1 and 2.
template <End kEnd>
TileFunction* const* tile_functions(bool two_rows, int64_t stride_w) {
  if (stride_w == 1) return two_rows ? kTiles<true, 2, kEnd> : kTiles<false, 2, kEnd>;
  return two_rows ? kTiles<true, 4, kEnd> : kTiles<false, 4, kEnd>;
}

// Any other stride: pixel by pixel.
template <bool kTwoRows>
void multiply_apart(const Strips& s, int64_t pixels, int64_t step, Y* sums) {
  const Y* strips[kMaxPairs];
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t k = 0; k < s.pairs; ++k) strips[k] = s.strips[k] + p * step;
    Strips one = s;
    one.strips = strips;
    Y sum[4];
    multiply_strips<1, kTwoRows, 2, End::kSums>(one, sum);
    for (int half = 0; half < 2; ++half) {
      sums[p * 2 + half] = sum[half];
      if (kTwoRows) sums[(pixels + p) * 2 + half] = sum[2 + half];
    }
  }
}

void interleave_rows(const uint8_t* first, const uint8_t* second, int64_t c_pitch, int64_t columns, Y* strip) {
  for (int64_t x = 0; x < columns; ++x) {
    const Y a = _mm256_cvtepu8_epi16(load16(first + x * c_pitch)),
            b = _mm256_cvtepu8_epi16(load16(second + x * c_pitch));
    store32(strip + 2 * x, _mm256_unpacklo_epi16(a, b));
    store32(strip + 2 * x + 1, _mm256_unpackhi_epi16(a, b));
  }
}

// Two vectors of 8 dwords in channel order -> the order of a strip.
OCTET_INLINE void to_lanes(Y a, Y b, Y* out) {
  out[0] = _mm256_permute2x128_si256(a, b, 0x20);
  out[1] = _mm256_permute2x128_si256(a, b, 0x31);
}

// 16 channels of a depthwise convolution.
struct ChannelBlock {
  Y weights[kMaxPairs * 4];
  Y start[2];
  Y multiplier[2];
};

void prepare_block(const ConvArgs& a, int64_t c, bool two_rows, int64_t pairs, bool relu, ChannelBlock& block) {
  const ConvGeometry& g = a.geometry;
  const int64_t padded = (g.out_channels + 15) / 16 * 16;
  const auto tap = [&](int64_t ky, int64_t kx) __attribute__((always_inline)) {
    return ky < 0 || ky >= g.kernel_h ? _mm256_setzero_si256()
                                      : _mm256_cvtepi8_epi16(load16(a.weights + (ky * g.kernel_w + kx) * padded + c));
  };
  Y* to = block.weights;
  for (int64_t k = 0; k < pairs; ++k)
    for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
      const Y first = tap(2 * k, kx), second = tap(2 * k + 1, kx), before = tap(2 * k - 1, kx);
      *to++ = _mm256_unpacklo_epi16(first, second);
      if (two_rows) *to++ = _mm256_unpacklo_epi16(before, first);  // the second output row is one row further down
      *to++ = _mm256_unpackhi_epi16(first, second);
      if (two_rows) *to++ = _mm256_unpackhi_epi16(before, first);
    }
  const float* m = a.epilogue.multiplier + c;
  const Y bits = _mm256_set1_epi32(relu ? kBitsOfTwo23 : 0);
  to_lanes(_mm256_add_epi32(load32(a.acc_init + c), bits), _mm256_add_epi32(load32(a.acc_init + c + 8), bits),
           block.start);
  to_lanes(load32(m), load32(m + 8), block.multiplier);
}

// Sums that multiply_strips() left: any epilogue.
void finish_pixels(const Finish& finish, Y* sums, int64_t pixels, int64_t c, int64_t n, int64_t y, int64_t x) {
  for (int64_t p = 0; p < pixels; ++p) to_lanes(sums[2 * p], sums[2 * p + 1], sums + 2 * p);  // its own inverse
  finish.row(reinterpret_cast<const int32_t*>(sums), pixels, c, n, y, x);
}

}  // namespace

void depthwise_avx2(const ConvArgs& a, Range rows) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const bool two_rows = g.stride_h == 1 && g.dilation_h == 1;
  const bool sliding = two_rows || (g.stride_h == 2 && g.dilation_h == 1);
  const int64_t pairs = (g.kernel_h + (two_rows ? 2 : 1)) / 2, step_rows = two_rows ? 2 : 1;
  // Output columns whose strips fit.
  const int64_t columns = kStripBytes / 64 / pairs, reach = (g.kernel_w - 1) * g.dilation_w + 1;
  const int64_t width = columns < reach ? 0 : smaller((columns - reach) / g.stride_w + 1, e.out.w);
  if (pairs * g.kernel_w > kMaxPairs || width == 0) return kernels(Isa::kScalar).depthwise(a, rows);
  const Finish finish(e);
  const bool straight = finish.straight() && finish.sum() == Sum::kNone && g.stride_w <= 2;
  const bool relu = straight && relu_shortcut(a, g.kernel_h * g.kernel_w);
  if (straight && has_walks(g)) return walk_rows(a, rows, finish, relu);
  TileFunction* const* const tiles = relu       ? tile_functions<End::kReluCodes>(two_rows, g.stride_w)
                                     : straight ? tile_functions<End::kCodes>(two_rows, g.stride_w)
                                                : tile_functions<End::kSums>(two_rows, g.stride_w);
  alignas(64) Y storage[kStripBytes / 32];
  ChannelBlock block;
  Y sums[kTilePixels * 4];
  for (int64_t c = 0; c < g.out_channels; c += 16) {
    prepare_block(a, c, two_rows, pairs, relu, block);
    for (int64_t row = rows.begin; row < rows.end;) {
      const int64_t n = row / e.out.h, y0 = row % e.out.h, height = smaller(rows.end - row, e.out.h - y0);
      row += height;
      const uint8_t* image = a.in.data + n * a.in.image_stride + (y0 * g.stride_h - g.pad_top) * a.in.row_stride -
                             g.pad_left * a.in.c_pitch + c;
      const int64_t last_row = (height - 1) * g.stride_h + (g.kernel_h - 1) * g.dilation_h;
      for (int64_t x0 = 0; x0 < e.out.w; x0 += width) {
        const int64_t x1 = smaller(x0 + width, e.out.w), used = (x1 - x0 - 1) * g.stride_w + reach;
        Y* strips[kMaxPairs];
        for (int64_t k = 0; k < pairs; ++k) strips[k] = storage + k * columns * 2;
        for (int64_t y = 0; y < height; y += step_rows) {
          int64_t first = 0;
          if (sliding && y > 0) {  // all but the last strip are there
            Y* oldest = strips[0];
            for (int64_t k = 0; k + 1 < pairs; ++k) strips[k] = strips[k + 1];
            strips[pairs - 1] = oldest;
            first = pairs - 1;
          }
          for (int64_t k = first; k < pairs; ++k) {
            const auto line = [&](int64_t ky) {  // rows after the last one have weight zero
              return image + smaller(y * g.stride_h + ky * g.dilation_h, last_row) * a.in.row_stride +
                     x0 * g.stride_w * a.in.c_pitch;
            };
            interleave_rows(line(2 * k), line(2 * k + 1), a.in.c_pitch, used, strips[k]);
          }
          for (int64_t x = x0; x < x1;) {
            const int64_t left = x1 - x, pixels = left == kTilePixels + 1 ? 4 : smaller(left, kTilePixels);
            const Y* at[kMaxPairs];
            for (int64_t k = 0; k < pairs; ++k) at[k] = strips[k] + (x - x0) * g.stride_w * 2;
            Strips s{at, pairs, g.kernel_w, g.dilation_w * 2, block.weights, block.start, &finish, block.multiplier};
            const int64_t made = smaller(step_rows, height - y);
            if (straight) {
              s.out[0] = e.out.data + n * e.out.image_stride + (y0 + y) * e.out.row_stride + x * e.out.c_pitch + c;
              s.out[1] = made == 2 ? s.out[0] + e.out.row_stride : nullptr;
              s.out_step = e.out.c_pitch;
            }
            if (g.stride_w <= 2)
              tiles[pixels](s, sums);
            else if (two_rows)
              multiply_apart<true>(s, pixels, g.stride_w * 2, sums);
            else
              multiply_apart<false>(s, pixels, g.stride_w * 2, sums);
            for (int64_t i = 0; i < made && !straight; ++i)
              finish_pixels(finish, sums + i * pixels * 2, pixels, c, n, y0 + y + i, x);
            x += pixels;
          }
        }
      }
    }
  }
}

}  // namespace octet::kernels
