// Exact 1x1 convolution on bytes, for processors without byte dot products (larger kernels: conv_byte_windows.h).
// vpmaddubsw adds two products u8 x s8 with 16-bit saturation, but while the two codes are small enough no weights
// reach it. So the inner loop multiplies bytes: vpmaddubsw, vpmaddwd by ones and vpaddd for 4 input channels x 8 output
// channels, three quarters of what words need (conv_words.h). Most codes are small, because the largest of a tensor
// sets its scale. Where a pair is too large, the copy of the pixels gets a smaller code, and the difference is added to
// the sums that the pixel starts with. Too many of them, and the rows are left to conv_words().
//
// Codes that start at a small zero point x weights: pairs up to 256, as 256 * 127 and 256 * -128 are 16-bit integers.
// Codes around a zero point in the middle of their range: less 128 they are the signed operand d, and the weights plus
// 128 the unsigned one: sum x w = sum (w + 128) d - 128 sum d + 128 sum w. Pairs from -128 to 128, as 255 * 128 is a
// 16-bit integer.
#pragma once
#include <type_traits>

#include "engine/kernels/avx2/conv_words.h"

namespace octet::kernels {
namespace {

constexpr int64_t kRepairShare = 16;    // at most one of so many dwords is repaired
constexpr int64_t kByteTilePixels = 5;  // 10 sums, two vectors of weights, ones, one of input, two products

// Sum of the products of bytes; `ones` make dwords of pairs.
OCTET_INLINE Y add_pairs(Y sum, Y pairs, Y ones) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
}
struct ByteDot {
  static OCTET_INLINE Y add(Y sum, Y input, Y weights, Y ones) {
    return add_pairs(sum, _mm256_maddubs_epi16(input, weights), ones);
  }
};
struct SignedByteDot {
  // The dword in front of a pixel is added to its sums.
  static constexpr bool kPixelTerm = true;
  static OCTET_INLINE Y add(Y sum, Y input, Y weights, Y ones) {
    return add_pairs(sum, _mm256_maddubs_epi16(weights, input), ones);
  }
};

// Unsigned codes whose *groups* (the pairs at the same place of two neighbouring dwords) sum up to at most 256: then
// the products of two dwords may be added before they become dwords.
struct GroupDot {
  static constexpr bool kTwoDwords = true;
  static OCTET_INLINE Y add(Y sum, const Y (&input)[2], Y first_weights, Y second_weights, Y ones) {
    return add_pairs(
        sum,
        _mm256_add_epi16(_mm256_maddubs_epi16(input[0], first_weights), _mm256_maddubs_epi16(input[1], second_weights)),
        ones);
  }
};
constexpr int64_t kGroupTilePixels = 4;    // 8 sums, four vectors of weights, ones, one of input, two products
constexpr int64_t kGroupRepairShare = 24;  // more repairs take more time than groups save

// What the copy of four codes lacks.
struct Repair {
  int32_t start = 0;  // of the pixel's own sums, in entries
  int32_t panel = 0;  // bytes from the first weights of a block
  int32_t words = 0;  // the two differences at the even places
  int32_t odd_words = 0;
};

// In the scratch of a thread: [weights of a block plus 128][copied pixels][places][repairs][the sums that pixels start
// with: the common ones, then those of pixels with repairs].
struct BytePlan {
  bool is_signed = false;
  int64_t dwords = 0;       // of a pixel
  int64_t pixel_bytes = 0;  // of a copied pixel and the dword in front of it
  int64_t chunk_rows = 0;   // output rows that are copied at once
  int64_t panel_bytes = 0, pixels_bytes = 0, places_bytes = 0, repairs = 0, repairs_bytes = 0, scratch_bytes = 0;
};

inline BytePlan byte_plan(const ConvArgs& a) {
  const QTensor& out = a.epilogue.out;
  BytePlan p;
  p.is_signed = a.in.zero_point >= 64;
  p.dwords = (a.geometry.in_channels + 3) / 4;
  p.pixel_bytes = (p.dwords + 1) * 4;
  p.chunk_rows = rows_of_chunk(out, {.row_bytes = out.w * p.pixel_bytes});
  const auto round_up = [](int64_t bytes) { return (bytes + 63) / 64 * 64; };
  const int64_t pixels = p.chunk_rows * out.w;
  p.panel_bytes = p.is_signed ? p.dwords * 64 : 0;
  p.pixels_bytes = round_up(pixels * p.pixel_bytes + 36);
  p.places_bytes = round_up(pixels * static_cast<int64_t>(sizeof(PixelPlace)));
  p.repairs = pixels * p.dwords / kRepairShare + 1;
  p.repairs_bytes = round_up(p.repairs * static_cast<int64_t>(sizeof(Repair)));
  p.scratch_bytes =
      p.panel_bytes + p.pixels_bytes + p.places_bytes + p.repairs_bytes + (smaller(pixels, p.repairs) + 1) * 64;
  return p;
}

// Copies the dwords of a pixel with pairs that cannot saturate; returns the end of the repairs.
template <bool kSigned>
OCTET_INLINE Repair* copy_pixel(const uint8_t* in, int64_t dwords, int32_t start, uint8_t* to, Repair* repairs,
                                const Repair* end) {
  const Y low = _mm256_set1_epi16(0xff), ones = _mm256_set1_epi8(1);
  Y total = _mm256_setzero_si256();
  for (int64_t d = 0; d < dwords; d += 8) {
    Y codes = load32(in + 4 * d), excess;
    if constexpr (kSigned) {
      codes = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
      if (d + 8 > dwords) codes = _mm256_and_si256(codes, first_floats(dwords - d));
      const Y pairs = _mm256_maddubs_epi16(ones, codes);
      const Y kept = _mm256_max_epi16(_mm256_min_epi16(pairs, _mm256_set1_epi16(128)), _mm256_set1_epi16(-128));
      excess = _mm256_sub_epi16(pairs, kept);
      total = _mm256_add_epi16(total, kept);
    } else {
      excess = _mm256_subs_epu16(_mm256_maddubs_epi16(codes, ones), _mm256_set1_epi16(256));
    }
    // The even code of a pair becomes what the odd one leaves, which is within its range.
    store32(to + 4 * d, _mm256_sub_epi8(codes, _mm256_and_si256(excess, low)));
    if (_mm256_testz_si256(excess, excess)) [[likely]]
      continue;
    alignas(32) int32_t words[8];
    store32(words, excess);
    const Y none = _mm256_cmpeq_epi32(excess, _mm256_setzero_si256());
    for (int which = ~_mm256_movemask_ps(_mm256_castsi256_ps(none)) & 0xff; which != 0; which &= which - 1) {
      const int i = __builtin_ctz(static_cast<unsigned>(which));
      if (d + i >= dwords || repairs == end) break;
      *repairs++ = {start, static_cast<int32_t>(d + i) * 64, words[i]};
    }
  }
  if constexpr (kSigned) {
    const Y sums = _mm256_madd_epi16(total, _mm256_set1_epi16(-128));
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
    _mm_storeu_si32(to - 4, sum);
  }
  return repairs;
}

// The same with groups that cannot saturate: the second pair of a larger one becomes zero, and the first is copied as
// above. `dwords` is even.
OCTET_INLINE Repair* copy_groups(const uint8_t* in, int64_t dwords, int32_t start, uint8_t* to, Repair* repairs,
                                 const Repair* end) {
  const Y low = _mm256_set1_epi16(0xff), ones = _mm256_set1_epi8(1), most = _mm256_set1_epi16(256);
  const Y seconds = _mm256_set1_epi64x(static_cast<int64_t>(0xffffffff00000000)), zero = _mm256_setzero_si256();
  for (int64_t d = 0; d < dwords; d += 8) {
    Y codes = load32(in + 4 * d);
    if (d + 8 > dwords) codes = _mm256_and_si256(codes, first_floats(dwords - d));
    const Y pairs = _mm256_maddubs_epi16(codes, ones);
    const Y large = _mm256_subs_epu16(_mm256_add_epi16(pairs, _mm256_shuffle_epi32(pairs, 0xb1)), most);
    if (!_mm256_testz_si256(large, large)) [[unlikely]] {
      const Y second = _mm256_andnot_si256(_mm256_cmpeq_epi16(large, zero), seconds);
      const Y taken = _mm256_blendv_epi8(_mm256_and_si256(_mm256_subs_epu16(pairs, most), low), codes, second);
      codes = _mm256_sub_epi8(codes, taken);
      alignas(32) int32_t even[8], odd[8];
      store32(even, _mm256_and_si256(taken, low));
      store32(odd, _mm256_srli_epi16(taken, 8));
      const Y none = _mm256_cmpeq_epi32(taken, zero);
      for (int which = ~_mm256_movemask_ps(_mm256_castsi256_ps(none)) & 0xff; which != 0; which &= which - 1) {
        const int i = __builtin_ctz(static_cast<unsigned>(which));
        if (repairs == end) break;
        *repairs++ = {start, static_cast<int32_t>(d + i) * 64, even[i], odd[i]};
      }
    }
    store32(to + 4 * d, codes);
  }
  return repairs;
}

// Adds what the copies lack to the sums that their pixels start with.
inline void add_differences(const Repair* repairs, const Repair* end, const int8_t* panel, int32_t* starts) {
  for (const Repair* r = repairs; r < end; ++r) {
    const Y words = _mm256_set1_epi32(r->words), odd_words = _mm256_set1_epi32(r->odd_words);
    int32_t* sums = starts + r->start;
    for (int half = 0; half < 2; ++half) {
      const Y w = load32(panel + r->panel + half * 32), even = _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8);
      const Y products =
          _mm256_add_epi32(_mm256_madd_epi16(words, even), _mm256_madd_epi16(odd_words, _mm256_srai_epi16(w, 8)));
      store32(sums + half * 8, _mm256_add_epi32(load32(sums + half * 8), products));
    }
  }
}

// 128 times the sum of the weights is what their product with the codes less 128 lacks. Makes the unsigned weights too.
inline void unsign_weights(const int8_t* weights, int64_t dwords, int8_t* panel, int32_t* start) {
  Y sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (int64_t d = 0; d < dwords; ++d)
    for (int half = 0; half < 2; ++half) {
      const Y w = load32(weights + d * 64 + half * 32);
      store32(panel + d * 64 + half * 32, _mm256_xor_si256(w, _mm256_set1_epi8(-128)));
      sum[half] = ByteDot::add(sum[half], _mm256_set1_epi8(1), w, _mm256_set1_epi16(1));
    }
  for (int half = 0; half < 2; ++half)
    store32(start + half * 8, _mm256_add_epi32(load32(start + half * 8), _mm256_slli_epi32(sum[half], 7)));
}

// `scratch`: as large as word_plan(a) and byte_plan(a) say, 64-byte aligned.
template <bool kSigned>
void conv_bytes(const ConvArgs& a, Range rows, Range blocks, std::byte* scratch) {
  using Dot = std::conditional_t<kSigned, SignedByteDot, ByteDot>;
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const BytePlan p = byte_plan(a);
  const ConvLayout layout = conv_layout(g, a.in.c_pitch);
  const Finish finish(e);
  const bool relu = finish.straight() && relu_shortcut(a, g.in_channels);
  TileFunction* const* const whole = pixel_tiles<Dot, 2>(finish, relu);
  TileFunction* const* const half = pixel_tiles<Dot, 1>(finish, relu);
  TileFunction* const* const group_whole = pixel_tiles<GroupDot, 2>(finish, relu);
  TileFunction* const* const group_half = pixel_tiles<GroupDot, 1>(finish, relu);
  auto* panel = reinterpret_cast<int8_t*>(scratch);
  auto* pixels = reinterpret_cast<uint8_t*>(scratch + p.panel_bytes) + 4;
  auto* places = reinterpret_cast<PixelPlace*>(scratch + p.panel_bytes + p.pixels_bytes);
  auto* repairs = reinterpret_cast<Repair*>(scratch + p.panel_bytes + p.pixels_bytes + p.places_bytes);
  auto* starts =
      reinterpret_cast<int32_t*>(scratch + p.panel_bytes + p.pixels_bytes + p.places_bytes + p.repairs_bytes);
  PixelTile tile{
      .kernel_h = 1, .segments_per_row = 1, .steps = p.dwords, .in = pixels, .acc_init = starts, .finish = &finish};
  bool groups = !kSigned && p.dwords % 2 == 0;
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t n = row / e.out.h, y0 = row % e.out.h;
    const int64_t height = smaller(smaller(p.chunk_rows, e.out.h - y0), rows.end - row);
    const uint8_t* image = a.in.data + n * a.in.image_stride - g.pad_left * a.in.c_pitch;
    Repair* end = repairs;
    int32_t own = 16;  // where the sums of the next pixel with repairs start
    const auto copy = [&]<bool kGroups>() {
      const int64_t share = height * e.out.w * p.dwords / (kGroups ? kGroupRepairShare : kRepairShare) + 1;
      const Repair* const most = repairs + smaller(share, p.repairs);
      end = repairs, own = 16;
      PixelPlace* place = places;
      for (int64_t y = 0; y < height && end != most; ++y) {
        const uint8_t* in = image + ((y0 + y) * g.stride_h - g.pad_top) * a.in.row_stride;
        for (int64_t x = 0; x < e.out.w; ++x, ++place, in += g.stride_w * a.in.c_pitch) {
          const int64_t at = (place - places) * p.pixel_bytes;
          Repair* const before = end;
          end = kGroups ? copy_groups(in, p.dwords, own, pixels + at, end, most)
                        : copy_pixel<kSigned>(in, p.dwords, own, pixels + at, end, most);
          *place = {static_cast<int32_t>(at), static_cast<int32_t>(y * e.out.row_stride + x * e.out.c_pitch),
                    static_cast<int32_t>(y * e.residual.row_stride + x * e.residual.c_pitch), end != before ? own : 0};
          own += end != before ? 16 : 0;
        }
      }
      return end != most;  // else there are too many
    };
    groups = groups && copy.template operator()<true>();
    if (!groups && !copy.template operator()<false>()) {
      conv_words(a, {row, row + height}, blocks, scratch);
      row += height;
      continue;
    }
    for (int64_t b = blocks.begin; b < blocks.end; ++b) {
      const int8_t* weights = a.weights + b * layout.dwords * 64;
      tile.panel = kSigned ? panel : weights;
      start_sums(a, b, relu, starts);
      if constexpr (kSigned) unsign_weights(weights, p.dwords, panel, starts);
      for (int64_t i = 16; i < own; i += 16) std::memcpy(starts + i, starts, 64);
      add_differences(repairs, end, weights, starts);
      tile.aim(e, n, y0, b * 16);
      const bool few = g.out_channels - b * 16 <= 8;
      if (groups)
        for_each_tile(tile, few ? group_half : group_whole, places, height * e.out.w, row * e.out.w, kGroupTilePixels);
      else
        for_each_tile(tile, few ? half : whole, places, height * e.out.w, row * e.out.w, kByteTilePixels);
    }
    row += height;
  }
}

}  // namespace
}  // namespace octet::kernels
