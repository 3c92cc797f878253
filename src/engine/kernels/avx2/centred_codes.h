// Copies of pixels for conv_bytes.h: codes less the *centre* of their channel, which are small, as most of what codes
// differ in is their channel. The weights of the copies are unsigned (those of the layer plus 128), so products in a
// 16-bit sum cannot leave it while positive codes sum up to at most 128 and negative ones to at least -128.
#pragma once
#include "engine/kernels/avx2/byte_products.h"

namespace octet::kernels {
namespace {

// The centre of a channel is 128 + 8 n with -16 <= n < 16: eight n x unsigned weights sum up to a 16-bit integer.
struct Centres {
  int8_t* eighths;  // n for each channel, zero beyond the last; a multiple of 16
  int8_t* codes;    // 8 n: the centre less 128; readable as far as pixels are copied
};

// About the mean of 32 of the pixels, of which pixel(i, of) returns the address of the `i`th of `of`.
template <typename Pixel>
void find_centres(const Pixel& pixel, int64_t dwords, const Centres& to) {
  constexpr int kPixels = 32;
  const uint8_t* in[kPixels];
  for (int i = 0; i < kPixels; ++i) in[i] = pixel(i, kPixels);
  const Y low = _mm256_set1_epi16(0xff), half = _mm256_set1_epi16(128), most = _mm256_set1_epi16(31);
  for (int64_t d = 0; d < dwords; d += 8) {
    Y even = half, odd = half;
    for (int i = 0; i < kPixels; ++i) {
      const Y codes = load32(in[i] + 4 * d);
      even = _mm256_add_epi16(even, _mm256_and_si256(codes, low));
      odd = _mm256_add_epi16(odd, _mm256_srli_epi16(codes, 8));
    }
    even = _mm256_min_epi16(_mm256_srli_epi16(even, 8), most), odd = _mm256_min_epi16(_mm256_srli_epi16(odd, 8), most);
    Y n = _mm256_sub_epi8(_mm256_or_si256(even, _mm256_slli_epi16(odd, 8)), _mm256_set1_epi8(16));
    if (d + 8 > dwords) n = _mm256_and_si256(n, first_floats(dwords - d));
    store32(to.eighths + 4 * d, n);
    n = _mm256_add_epi8(n, n), n = _mm256_add_epi8(n, n);
    store32(to.codes + 4 * d, _mm256_add_epi8(n, n));
  }
  store32(to.eighths + 4 * dwords, _mm256_setzero_si256());
}

// The codes that share a 16-bit sum.
struct SharedSum {
  int64_t bytes[4];
  int count;
};

// Those of the sum at word `i` of a vector of 32 codes.
template <bool kGroups>
OCTET_INLINE SharedSum shared_sum(int i) {
  if constexpr (!kGroups) return {{2 * i, 2 * i + 1}, 2};
  const int64_t at = i / 4 * 8 + i % 2 * 2;
  return {{at, at + 1, at + 4, at + 5}, 4};
}

// Which words of the sums of positive codes, or of negative ones, are too large: two bits each.
template <bool kGroups>
OCTET_INLINE unsigned large_sums(Y codes) {
  const Y ones = _mm256_set1_epi8(1), zero = _mm256_setzero_si256();
  Y positive = _mm256_maddubs_epi16(ones, _mm256_max_epi8(codes, zero));
  Y negative = _mm256_maddubs_epi16(ones, _mm256_min_epi8(codes, zero));
  if constexpr (kGroups) {
    positive = _mm256_add_epi16(positive, _mm256_shuffle_epi32(positive, 0xb1));
    negative = _mm256_add_epi16(negative, _mm256_shuffle_epi32(negative, 0xb1));
  }
  // A difference that has saturated to 127 or -128 is too large.
  return static_cast<unsigned>(_mm256_movemask_epi8(_mm256_or_si256(
      _mm256_cmpgt_epi16(positive, _mm256_set1_epi16(126)), _mm256_cmpgt_epi16(_mm256_set1_epi16(-127), negative))));
}

// The repairs of the pixels that are copied, and the sums of their own that these start with.
struct Repairs {
  Repair* next;
  const Repair* end;
  int32_t own = 16;  // where the sums of the next pixel with repairs start

  bool full() const { return next == end; }
};

// 32 codes of a pixel, or the first `dwords`, whose copies have too large sums.
struct LargeCodes {
  const uint8_t* in;
  const int8_t* centres;
  int64_t dwords;
  int64_t panel;  // bytes from the first weights of a block to the first of theirs
  int8_t* copies;
  PixelPlace* place;
};

// Makes the copies smaller.
template <bool kGroups>
__attribute__((noinline)) void shrink(const LargeCodes& codes, Repairs& repairs) {
  unsigned large = large_sums<kGroups>(load32(codes.copies));
  while (large != 0) {
    const int word = __builtin_ctz(large) / 2;
    const SharedSum sum = shared_sum<kGroups>(word);
    large &= ~(3u << 2 * word | 3u << 2 * (kGroups ? word ^ 2 : word));
    int most = 126, least = -127;
    for (int i = 0; i < sum.count && sum.bytes[i] < 4 * codes.dwords; i += 2) {
      int32_t lacks[2];
      for (int j = 0; j < 2; ++j) {
        const int64_t at = sum.bytes[i + j];
        const int code = codes.in[at] - 128 - codes.centres[at];
        const int kept = code > most ? most : code < least ? least : code;
        (kept > 0 ? most : least) -= kept;
        codes.copies[at] = static_cast<int8_t>(kept);
        lacks[j] = code - kept;
      }
      if ((lacks[0] | lacks[1]) == 0 || repairs.full()) continue;
      if (codes.place->start == 0) codes.place->start = repairs.own, repairs.own += 16;
      const int shift = word % 2 * 16;
      const auto place = [shift](int32_t v) {
        return static_cast<int32_t>(static_cast<uint32_t>(v & 0xffff) << shift);
      };
      *repairs.next++ = {codes.place->start, static_cast<int32_t>(codes.panel + sum.bytes[i] / 4 * 64), place(lacks[0]),
                         place(lacks[1])};
    }
  }
}

// The pixels of a row and their copies.
struct PixelRow {
  const uint8_t* in;
  int64_t step;  // bytes from one pixel to the next
  int64_t pixels;
  int64_t dwords;  // of a pixel
  const int8_t* centres;
  int8_t* copies;      // of the first pixel, behind the dword in front of it
  PixelPlace* places;  // the first one is set, without a sum of its own
  PixelPlace next;     // how far it is from one place to the next
};

// Copies pixels with -128 times the sum of their codes in front. kGroups: the pairs at the same place of two
// neighbouring dwords share a sum. kOne: at most 8 dwords.
template <bool kGroups, bool kOne>
__attribute__((noinline)) void copy_centred(const PixelRow& row, Repairs& repairs) {
  const Y ones = _mm256_set1_epi8(1), sign = _mm256_set1_epi8(-128), most = _mm256_set1_epi16(126),
          factor = _mm256_set1_epi16(-128);
  const Y mask = first_floats(row.dwords % 8 == 0 ? 8 : row.dwords % 8);
  const int64_t last = (row.dwords - 1) / 8 * 8;
  const __m128i next = load16(&row.next);
  __m128i place = load16(row.places);
  PixelPlace* places = row.places;
  const uint8_t* in = row.in;
  int8_t* to = row.copies;
  for (int64_t x = 0; x < row.pixels; ++x, ++places, in += row.step, to += row.next.in) {
    store16(places, place);
    place = _mm_add_epi32(place, next);
    Y total = _mm256_setzero_si256();
    const auto copy = [&](int64_t d, bool masked) __attribute__((always_inline)) {
      // A difference that saturates is too large for a sum as well.
      Y codes = _mm256_subs_epi8(_mm256_xor_si256(load32(in + 4 * d), sign), load32(row.centres + 4 * d));
      if (masked) codes = _mm256_and_si256(codes, mask);
      store32(to + 4 * d, codes);
      // Sums of magnitudes are a quick test, and enough for most.
      Y sums = _mm256_maddubs_epi16(_mm256_abs_epi8(codes), ones);
      if constexpr (kGroups) sums = _mm256_add_epi16(sums, _mm256_shuffle_epi32(sums, 0xb1));
      const Y large = _mm256_cmpgt_epi16(sums, most);
      if (!_mm256_testz_si256(large, large)) [[unlikely]] {
        shrink<kGroups>({in + 4 * d, row.centres + 4 * d, row.dwords - d, d * 64, to + 4 * d, places}, repairs);
        codes = load32(to + 4 * d);
      }
      total = _mm256_add_epi16(total, _mm256_maddubs_epi16(ones, codes));
    };
    if constexpr (!kOne)
      for (int64_t d = 0; d < last; d += 8) copy(d, false);
    copy(kOne ? 0 : last, true);
    const Y sums = _mm256_madd_epi16(total, factor);
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
    _mm_storeu_si32(to - 4, sum);
  }
}

}  // namespace
}  // namespace octet::kernels
