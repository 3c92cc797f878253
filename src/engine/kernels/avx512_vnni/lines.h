// Rows of u8 tensors as lines of bytes: rows without gaps are one line, otherwise a pixel is a line. Lines are whole
// blocks of 16 bytes (or 4), except where copy() promises exact channels.
#pragma once
#include "engine/kernels/avx512_vnni/finish.h"
#include "engine/kernels/avx512_vnni/vector.h"

namespace octet::kernels {
namespace {

// Row r, counted over n * h.
OCTET_INLINE uint8_t* row_of(const QTensor& t, int64_t r) {
  return t.data + r / t.h * t.image_stride + r % t.h * t.row_stride;
}

// Of a vector of 64.
OCTET_INLINE __mmask64 first_bytes(int64_t n) {
  return n >= 64 ? ~0ull : (1ull << n) - 1;
}

// Bytes of a pixel that producers write.
OCTET_INLINE int64_t written_bytes(const QTensor& t) {
  return t.c_pitch < 16 ? t.c_pitch : (t.c + 15) / 16 * 16;
}

// For finishes that only clamp to codes.
inline Constants limits(int32_t lo, int32_t hi, int32_t zero_point) {
  Epilogue e;
  e.lo = lo;
  e.hi = hi;
  e.out.zero_point = zero_point;
  return make_constants(e);
}

}  // namespace
}  // namespace octet::kernels
