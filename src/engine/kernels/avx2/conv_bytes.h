// Exact 1x1 convolution on bytes, for processors without byte dot products. vpmaddubsw adds two products u8 x s8 with
// 16-bit saturation; while the two codes add up to 256 or less, no weights can saturate it. So the inner loop
// multiplies bytes: vpmaddubsw, vpmaddwd by ones and vpaddd for 4 input channels x 8 output channels, three quarters of
// what words need (conv_words.h). Codes of trained layers are mostly small, because their largest value sets the scale.
// Where a pair is larger, the four codes are noted while the pixels are copied, and the difference between the exact
// and the saturated product is added to the sums of that pixel. Too many of them, and the rows are left to
// conv_words().
//
// Codes around a zero point in the middle of their range lose most of it before: sum (x - offset) * w + offset * sum w.
#pragma once
#include "engine/kernels/avx2/conv_words.h"

namespace octet::kernels {
namespace {

constexpr int16_t kLargestPairSum = 256;  // 256 * 127 and 256 * -128 are 16-bit integers
constexpr int64_t kOffsetBelowZero = 80;  // the offset is the zero point less this
constexpr int64_t kRepairShare = 16;      // at most one of so many dwords is repaired
alignas(32) constexpr int16_t kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

struct ByteDot {
  // The ones are an operand in memory: all registers are taken.
  static OCTET_INLINE Y add(Y sum, Y input, Y weights) {
    Y pairs = _mm256_maddubs_epi16(input, weights);
    asm("vpmaddwd %1, %0, %0" : "+x"(pairs) : "m"(*reinterpret_cast<const Y*>(kOnes)));
    return _mm256_add_epi32(sum, pairs);
  }
};

// What the copy of four codes lacks of the codes less the offset: of the two at even or at odd places.
struct Repair {
  int32_t start = 0;   // of the pixel's own sums, in entries
  int32_t panel = 0;   // bytes from the first weights of a block
  int32_t to_top = 0;  // bits: 8 for even places
  int32_t words = 0;   // the two differences
};

// In the scratch of a thread: [copied pixels][places][repairs][the sums that pixels start with: the common one, then
// those of pixels with repairs].
struct BytePlan {
  int64_t dwords = 0;      // of a pixel
  int64_t chunk_rows = 0;  // output rows that are copied at once
  int64_t offset = 0;
  int64_t pixels_bytes = 0, places_bytes = 0, repairs = 0, repairs_bytes = 0, scratch_bytes = 0;
};

inline BytePlan byte_plan(const ConvArgs& a) {
  const QTensor& out = a.epilogue.out;
  BytePlan p;
  p.dwords = (a.geometry.in_channels + 3) / 4;
  const int64_t row_bytes = out.w * a.in.c_pitch;
  const int64_t near = kChunkBytes / (row_bytes + out.w * padded_channels(out.c));
  const int64_t enough = (kChunkPixels + out.w - 1) / out.w, fit = kLargestChunk / row_bytes;
  const int64_t wanted = smaller(near > enough ? near : enough, fit);
  const int64_t chunks = wanted < 1 ? out.h : (out.h + wanted - 1) / wanted;
  p.chunk_rows = (out.h + chunks - 1) / chunks;
  p.offset = a.in.zero_point > kOffsetBelowZero ? a.in.zero_point - kOffsetBelowZero : 0;
  const auto round_up = [](int64_t bytes) { return (bytes + 63) / 64 * 64; };
  const int64_t pixels = p.chunk_rows * out.w;
  p.pixels_bytes = round_up(pixels * a.in.c_pitch + 32);
  p.places_bytes = round_up(pixels * static_cast<int64_t>(sizeof(PixelPlace)));
  p.repairs = pixels * p.dwords / kRepairShare + 1;
  p.repairs_bytes = round_up(p.repairs * static_cast<int64_t>(sizeof(Repair)));
  p.scratch_bytes = p.pixels_bytes + p.places_bytes + p.repairs_bytes + (smaller(pixels, p.repairs) + 1) * 64;
  return p;
}

OCTET_INLINE Repair* add_repairs(Y words, int64_t dword, int64_t dwords, int32_t start, int32_t to_top, Repair* repairs,
                                 const Repair* end) {
  alignas(32) int32_t all[8];
  store32(all, words);
  const Y none = _mm256_cmpeq_epi32(words, _mm256_setzero_si256());
  for (int which = ~_mm256_movemask_ps(_mm256_castsi256_ps(none)) & 0xff; which != 0; which &= which - 1) {
    const int i = __builtin_ctz(static_cast<unsigned>(which));
    if (dword + i >= dwords || repairs == end) break;
    *repairs++ = {start, static_cast<int32_t>(dword + i) * 64, to_top, all[i]};
  }
  return repairs;
}

// Copies the dwords of a pixel less the offset, within [0, 255] and with small pairs; returns the end of the repairs.
OCTET_INLINE Repair* copy_pixel(const uint8_t* in, int64_t dwords, Y offset, int32_t start, uint8_t* to,
                                Repair* repairs, const Repair* end) {
  const Y low = _mm256_set1_epi16(0xff);
  for (int64_t d = 0; d < dwords; d += 8) {
    const Y codes = load32(in + 4 * d), positive = _mm256_subs_epu8(codes, offset);
    const Y pairs = _mm256_maddubs_epi16(positive, _mm256_set1_epi8(1));
    const Y negative = _mm256_subs_epu8(offset, codes);
    const Y excess = _mm256_subs_epu16(pairs, _mm256_set1_epi16(kLargestPairSum));
    store32(to + 4 * d, positive);
    const Y wrong = _mm256_or_si256(excess, negative);
    if (_mm256_testz_si256(wrong, wrong)) [[likely]]
      continue;
    const Y even = _mm256_min_epi16(excess, _mm256_and_si256(positive, low)), odd = _mm256_sub_epi16(excess, even);
    store32(to + 4 * d, _mm256_sub_epi8(positive, _mm256_or_si256(even, _mm256_slli_epi16(odd, 8))));
    repairs = add_repairs(_mm256_sub_epi16(even, _mm256_and_si256(negative, low)), d, dwords, start, 8, repairs, end);
    repairs = add_repairs(_mm256_sub_epi16(odd, _mm256_srli_epi16(negative, 8)), d, dwords, start, 0, repairs, end);
  }
  return repairs;
}

// Adds what the copies lack to the sums that their pixels start with.
inline void add_differences(const Repair* repairs, const Repair* end, const int8_t* panel, int32_t* starts) {
  for (const Repair* r = repairs; r < end; ++r) {
    const Y words = _mm256_set1_epi32(r->words);
    const __m128i to_top = _mm_cvtsi32_si128(r->to_top);
    int32_t* sums = starts + r->start;
    for (int half = 0; half < 2; ++half) {
      const Y w = _mm256_srai_epi16(_mm256_sll_epi16(load32(panel + r->panel + half * 32), to_top), 8);
      store32(sums + half * 8, _mm256_add_epi32(load32(sums + half * 8), _mm256_madd_epi16(words, w)));
    }
  }
}

// acc_init of a block and the offset's share.
inline void byte_start(const ConvArgs& a, const BytePlan& p, int64_t block, const int8_t* panel, int32_t* start) {
  Y sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  if (p.offset != 0)
    for (int64_t d = 0; d < p.dwords; ++d)
      for (int half = 0; half < 2; ++half)
        sum[half] = ByteDot::add(sum[half], _mm256_set1_epi8(1), load32(panel + d * 64 + half * 32));
  const Y offset = _mm256_set1_epi32(static_cast<int32_t>(p.offset));
  for (int half = 0; half < 2; ++half)
    store32(start + half * 8,
            _mm256_add_epi32(load32(a.acc_init + block * 16 + half * 8), _mm256_mullo_epi32(sum[half], offset)));
}

// `scratch`: as large as word_plan(a) and byte_plan(a) say, 64-byte aligned.
inline void conv_bytes(const ConvArgs& a, Range rows, Range blocks, std::byte* scratch) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const BytePlan p = byte_plan(a);
  const ConvLayout layout = conv_layout(g, a.in.c_pitch);
  const Finish finish(e);
  TileFunction* const* const whole = pixel_tiles<ByteDot, 2>(finish);
  TileFunction* const* const half = pixel_tiles<ByteDot, 1>(finish);
  auto* pixels = reinterpret_cast<uint8_t*>(scratch);
  auto* places = reinterpret_cast<PixelPlace*>(scratch + p.pixels_bytes);
  const Y offset = _mm256_set1_epi8(static_cast<char>(p.offset));
  auto* repairs = reinterpret_cast<Repair*>(scratch + p.pixels_bytes + p.places_bytes);
  auto* starts = reinterpret_cast<int32_t*>(scratch + p.pixels_bytes + p.places_bytes + p.repairs_bytes);
  PixelTile tile{
      .kernel_h = 1, .segments_per_row = 1, .steps = p.dwords, .in = pixels, .acc_init = starts, .finish = &finish};
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t n = row / e.out.h, y0 = row % e.out.h;
    const int64_t height = smaller(smaller(p.chunk_rows, e.out.h - y0), rows.end - row);
    const uint8_t* image = a.in.data + n * a.in.image_stride - g.pad_left * a.in.c_pitch;
    Repair* end = repairs;
    int32_t own = 16;  // where the sums of the next pixel with repairs start
    PixelPlace* place = places;
    for (int64_t y = 0; y < height; ++y) {
      const uint8_t* in = image + ((y0 + y) * g.stride_h - g.pad_top) * a.in.row_stride;
      for (int64_t x = 0; x < e.out.w; ++x, ++place, in += g.stride_w * a.in.c_pitch) {
        const int64_t at = (place - places) * a.in.c_pitch;
        Repair* const before = end;
        end = copy_pixel(in, p.dwords, offset, own, pixels + at, end, repairs + p.repairs);
        *place = {static_cast<int32_t>(at), static_cast<int32_t>(y * e.out.row_stride + x * e.out.c_pitch),
                  static_cast<int32_t>(y * e.residual.row_stride + x * e.residual.c_pitch), end != before ? own : 0};
        own += end != before ? 16 : 0;
      }
    }
    if (end == repairs + p.repairs) {  // too many
      conv_words(a, {row, row + height}, blocks, scratch);
      row += height;
      continue;
    }
    for (int64_t b = blocks.begin; b < blocks.end; ++b) {
      tile.panel = a.weights + b * layout.dwords * 64;
      byte_start(a, p, b, tile.panel, starts);
      for (int64_t i = 16; i < own; i += 16) std::memcpy(starts + i, starts, 64);
      add_differences(repairs, end, tile.panel, starts);
      tile.channel = b * 16;
      tile.out = e.out.data ? e.out.data + n * e.out.image_stride + y0 * e.out.row_stride + b * 16 : nullptr;
      tile.residual = e.residual.data
                          ? e.residual.data + n * e.residual.image_stride + y0 * e.residual.row_stride + b * 16
                          : nullptr;
      for_each_tile(tile, g.out_channels - b * 16 <= 8 ? half : whole, places, height * e.out.w, row * e.out.w);
    }
    row += height;
  }
}

}  // namespace
}  // namespace octet::kernels
