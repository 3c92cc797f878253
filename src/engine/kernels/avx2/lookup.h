// A 256-entry table applied to 32 codes at a time with vpshufb, which looks up 16 entries by the low four bits and
// gives zero where bit 7 is set. The index of row i is x - 16 i: negative, hence zero, in rows above that of x. Every
// row holds the difference (xor) to the row before, so the sum over all rows up to that of x is the entry. The upper
// half of the table does the same with x - 128, so that no index wraps around.
#pragma once
#include "engine/kernels/avx2/vector.h"

namespace octet::kernels {
namespace {

// Of 16 N entries, in halves of eight rows.
template <int N>
OCTET_INLINE void load_rows(const uint8_t* table, Y (&rows)[N]) {
  for (int i = 0; i < N; ++i) {
    __m128i row = load16(table + 16 * i);
    if (i % 8 != 0) row = _mm_xor_si128(row, load16(table + 16 * (i - 1)));
    rows[i] = _mm256_broadcastsi128_si256(row);
  }
}

class Lookup {
 public:
  Lookup() = default;
  explicit Lookup(const uint8_t* table) { load_rows(table, rows_); }
  OCTET_INLINE Y operator()(Y codes) const {
    const Y sixteen = _mm256_set1_epi8(16);
    Y low = codes, high = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
    Y entry = _mm256_xor_si256(_mm256_shuffle_epi8(rows_[0], low), _mm256_shuffle_epi8(rows_[8], high));
#pragma GCC unroll 8
    for (int i = 1; i < 8; ++i) {
      low = _mm256_subs_epi8(low, sixteen);
      high = _mm256_subs_epi8(high, sixteen);
      entry = _mm256_xor_si256(
          entry, _mm256_xor_si256(_mm256_shuffle_epi8(rows_[i], low), _mm256_shuffle_epi8(rows_[8 + i], high)));
    }
    return entry;
  }

 private:
  Y rows_[16];
};

// A table of 64 entries in the same way, without its upper half.
class Lookup64 {
 public:
  Lookup64() = default;
  explicit Lookup64(const uint8_t* table) { load_rows(table, rows_); }
  // indices: the index less 16 i, for i = 0..3.
  OCTET_INLINE Y operator()(const Y (&indices)[4]) const {
    return _mm256_xor_si256(
        _mm256_xor_si256(_mm256_shuffle_epi8(rows_[0], indices[0]), _mm256_shuffle_epi8(rows_[1], indices[1])),
        _mm256_xor_si256(_mm256_shuffle_epi8(rows_[2], indices[2]), _mm256_shuffle_epi8(rows_[3], indices[3])));
  }

 private:
  Y rows_[4];
};

}  // namespace
}  // namespace octet::kernels
