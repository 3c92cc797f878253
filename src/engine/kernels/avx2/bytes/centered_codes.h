// Copies of pixels for pointwise.h: codes less the *center* of their channel, which are small, as most of what codes
// differ in is their channel. The weights of the copies are unsigned (those of the layer plus 128), so products in a
// 16-bit sum cannot leave it while positive codes sum up to at most 128 and negative ones to at least -128.
#pragma once
#include "engine/kernels/avx2/bytes/products.h"

namespace octet::kernels {
namespace {

// The center of a channel is 128 + 8 n with -16 <= n < 16: eight n x unsigned weights sum up to a 16-bit integer.
struct Centers {
  int8_t* eighths;  // n for each channel, zero beyond the last; a multiple of 16
  int8_t* codes;    // 8 n: the center less 128; readable as far as pixels are copied
};

// About the mean of 32 of the pixels, of which pixel(i, of) returns the address of the `i`th of `of`.
template <typename Pixel>
void find_centers(const Pixel& pixel, int64_t dwords, const Centers& to) {
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

// The codes that share a 16-bit sum: a pair, or the pairs at the same place of two neighboring dwords.
template <bool kGroups>
struct SharedSum {
  static constexpr int kCount = kGroups ? 4 : 2;
  int64_t first;

  int64_t at(int i) const { return first + i / 2 * 4 + i % 2; }
};

// Which sums of positive codes, or of negative ones, are too large: a bit for each, at the place of its first code.
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
  const Y large = _mm256_or_si256(_mm256_cmpgt_epi16(positive, _mm256_set1_epi16(126)),
                                  _mm256_cmpgt_epi16(_mm256_set1_epi16(-127), negative));
  return static_cast<unsigned>(_mm256_movemask_epi8(large)) & (kGroups ? 0x05050505u : 0x55555555u);
}

// At most: four codes that lack up to 255.
constexpr int64_t kRepairsOfSum = 12;

// The repairs of the pixels that are copied, and the sums of their own that these start with.
struct Repairs {
  Repair* next;
  Repair* end;
  int32_t own = 16;  // where the sums of the next pixel with repairs start

  bool full() const { return next == end; }
  void fill() { next = end; }
};

// 32 codes of a pixel, or what is left of it, from this dword on: some sum of their magnitudes is large.
struct Suspect {
  int32_t pixel, dword;
};

// The pixels of a row and their copies.
struct PixelRow {
  const uint8_t* in;
  int64_t step;  // bytes from one pixel to the next
  int64_t pixels;
  int64_t dwords;  // of a pixel
  const int8_t* centers;
  int8_t* copies;      // of the first pixel, behind the dword in front of it
  PixelPlace* places;  // the first one is set, without a sum of its own
  PixelPlace next;     // how far it is from one place to the next
  Suspect* suspects;   // room for all vectors of codes
};

// Makes the copies of one sum smaller.
template <bool kGroups>
OCTET_INLINE void shrink(const PixelRow& row, const Suspect& suspect, const SharedSum<kGroups>& sum, Repairs& repairs) {
  const uint8_t* in = row.in + suspect.pixel * row.step + 4 * suspect.dword;
  const int8_t* centers = row.centers + 4 * suspect.dword;
  int8_t* pixel = row.copies + suspect.pixel * row.next.in;
  int8_t* copies = pixel + 4 * suspect.dword;
  const int64_t end = 4 * (row.dwords - suspect.dword);
  int most = 126, least = -127, saturated = 0, lacks[SharedSum<kGroups>::kCount] = {};
#pragma GCC unroll 4
  for (int i = 0; i < sum.kCount; ++i) {
    const int64_t at = sum.at(i);
    if (at >= end) break;
    const int code = in[at] - 128 - centers[at];
    const int kept = code > most ? most : code < least ? least : code;
    const int positive = kept > 0 ? kept : 0;
    most -= positive, least -= kept - positive;
    saturated += code - copies[at], lacks[i] = code - kept;
    copies[at] = static_cast<int8_t>(kept);
  }
  if (saturated != 0) {
    int32_t term;  // -128 times the sum of the codes, whose repairs are multiplied like them
    std::memcpy(&term, pixel - 4, 4);
    term -= 128 * saturated;
    std::memcpy(pixel - 4, &term, 4);
  }
  PixelPlace& place = row.places[suspect.pixel];
  const bool first = place.start == 0;
  place.start = first ? repairs.own : place.start;
  repairs.own += first ? 16 : 0;
  const int shift = sum.first % 4 * 8;
#pragma GCC unroll 2
  for (int i = 0; i < sum.kCount; i += 2) {
    int a = lacks[i], b = lacks[i + 1];
    while ((a | b) != 0) {
      // Both at once where the pair cannot saturate, else one after the other.
      const auto most_of = [](int v) { return v > 127 ? 127 : v < -127 ? -127 : v; };
      const bool together = (a < 0 ? -a : a) + (b < 0 ? -b : b) <= 127;
      const int now_a = most_of(a), now_b = together || a == 0 ? most_of(b) : 0;
      const auto pair = static_cast<uint32_t>((now_a & 0xff) | (now_b & 0xff) << 8);
      const int64_t dword = suspect.dword + sum.at(i) / 4;
      *repairs.next++ = {place.start, static_cast<int32_t>(dword * 64), static_cast<int32_t>(pair << shift)};
      a -= now_a, b -= now_b;
    }
  }
}

// What the row's suspects need. Branches that depend on codes are not foreseen: there are few.
template <bool kGroups>
__attribute__((noinline)) void repair_row(const PixelRow& row, int64_t count, Repairs& repairs) {
  const auto sums_of = [&](const Suspect& s) __attribute__((always_inline)) {
    const int64_t dwords = smaller(row.dwords - s.dword, 8);  // the next pixel follows
    const Y codes = load32(row.copies + s.pixel * row.next.in + 4 * s.dword);
    return large_sums<kGroups>(_mm256_and_si256(codes, first_floats(dwords)));
  };
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Suspect s = row.suspects[i];
    row.suspects[found] = s;
    found += sums_of(s) != 0;
  }
  for (int64_t i = 0; i < found; ++i) {
    const Suspect s = row.suspects[i];
    unsigned large = sums_of(s);
    do {
      if (repairs.end - repairs.next < kRepairsOfSum) return repairs.fill();
      shrink<kGroups>(row, s, {__builtin_ctz(large)}, repairs);
      large &= large - 1;
    } while (large != 0);
  }
}

// Codes less the centers, and whether a sum may be too large.
template <bool kGroups>
struct Differences {
  Y codes, pair_sums;
  bool large;

  OCTET_INLINE Differences(Y in, Y centers, Y mask) {
    const Y ones = _mm256_set1_epi8(1);
    // A difference that saturates is too large for a sum as well.
    codes = _mm256_and_si256(_mm256_subs_epi8(_mm256_xor_si256(in, _mm256_set1_epi8(-128)), centers), mask);
    pair_sums = _mm256_maddubs_epi16(ones, codes);
    const Y magnitudes = _mm256_maddubs_epi16(_mm256_abs_epi8(codes), ones);
    // Sums of magnitudes are a quick test, and enough for most. Those from 127 on have a mean, rounded up, of 64.
    const Y mean =
        _mm256_avg_epu16(magnitudes, kGroups ? _mm256_shuffle_epi32(magnitudes, 0xb1) : _mm256_set1_epi16(1));
    large = !_mm256_testz_si256(mean, _mm256_set1_epi16(-64));
  }
};

// What is written beside the copies of a row: where its pixels are, and which codes are suspect.
struct RowLists {
  const __m128i next;
  __m128i place;
  PixelPlace* places;
  Suspect* const suspects;
  int64_t count = 0;

  OCTET_INLINE explicit RowLists(const PixelRow& row)
      : next(load16(&row.next)), place(load16(row.places)), places(row.places), suspects(row.suspects) {}

  OCTET_INLINE void add_place() {
    store16(places++, place);
    place = _mm_add_epi32(place, next);
  }
  OCTET_INLINE void add_suspect(int64_t pixel, int64_t dword, bool large) {
    suspects[count] = {static_cast<int32_t>(pixel), static_cast<int32_t>(dword)};
    count += large;
  }
};

// -128 times the sums of the pairs in each half of a vector, in all dwords of the half.
OCTET_INLINE Y half_terms(Y pair_sums) {
  Y sum = _mm256_madd_epi16(pair_sums, _mm256_set1_epi16(-128));
  sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0x4e));
  return _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0xb1));
}

// Copies pixels with -128 times the sum of their codes in front. kGroups: two neighboring dwords share sums.
// kOne: at most 8 dwords.
template <bool kGroups, bool kOne>
__attribute__((noinline)) void copy_centered(const PixelRow& row, Repairs& repairs) {
  const Y all = _mm256_set1_epi8(-1), mask = first_floats(row.dwords % 8 == 0 ? 8 : row.dwords % 8);
  const int64_t last = (row.dwords - 1) / 8 * 8, pixels = row.pixels, in_step = row.step, copy_step = row.next.in;
  const int8_t* const centers = row.centers;
  RowLists lists(row);
  const uint8_t* in = row.in;
  int8_t* to = row.copies;
  for (int64_t x = 0; x < pixels; ++x, in += in_step, to += copy_step) {
    lists.add_place();
    Y total = _mm256_setzero_si256();
    const auto copy = [&](int64_t d, Y kept) __attribute__((always_inline)) {
      const Differences<kGroups> differences(load32(in + 4 * d), load32(centers + 4 * d), kept);
      store32(to + 4 * d, differences.codes);
      lists.add_suspect(x, d, differences.large);
      total = _mm256_add_epi16(total, differences.pair_sums);
    };
    if constexpr (!kOne)
      for (int64_t d = 0; d < last; d += 8) copy(d, all);
    copy(kOne ? 0 : last, mask);
    const Y terms = half_terms(total);
    _mm_storeu_si32(to - 4, _mm_add_epi32(_mm256_castsi256_si128(terms), _mm256_extracti128_si256(terms, 1)));
  }
  if (lists.count > 0) repair_row<kGroups>(row, lists.count, repairs);
}

// The same for pixels of 4 dwords that follow each other closely: two in a vector.
template <bool kGroups>
__attribute__((noinline)) void copy_centered_twos(const PixelRow& row, Repairs& repairs) {
  const Y all = _mm256_set1_epi8(-1), centers = _mm256_broadcastsi128_si256(load16(row.centers));
  const int64_t pixels = row.pixels, copy_step = row.next.in;
  RowLists lists(row);
  const uint8_t* in = row.in;
  int8_t* to = row.copies;
  for (int64_t x = 0; x < pixels; x += 2, in += 32, to += 2 * copy_step) {
    const bool two = x + 1 < pixels;
    const Y codes = two ? load32(in) : _mm256_castsi128_si256(load16(in));
    const Differences<kGroups> differences(codes, centers, all);
    const Y terms = half_terms(differences.pair_sums);
    const auto put = [&](int i, __m128i copy, __m128i term) __attribute__((always_inline)) {
      lists.add_place();
      store16(to + i * copy_step, copy);
      _mm_storeu_si32(to + i * copy_step - 4, term);
      lists.add_suspect(x + i, 0, differences.large);
    };
    put(0, _mm256_castsi256_si128(differences.codes), _mm256_castsi256_si128(terms));
    if (two) put(1, _mm256_extracti128_si256(differences.codes, 1), _mm256_extracti128_si256(terms, 1));
  }
  if (lists.count > 0) repair_row<kGroups>(row, lists.count, repairs);
}

// copy_centered() for the pixels of `row`.
template <bool kGroups>
void copy_row(const PixelRow& row, Repairs& repairs) {
  if (row.dwords == 4 && row.step == 16) return copy_centered_twos<kGroups>(row, repairs);
  (row.dwords <= 8 ? copy_centered<kGroups, true> : copy_centered<kGroups, false>)(row, repairs);
}

}  // namespace
}  // namespace octet::kernels
