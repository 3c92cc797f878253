// Rows of u8 tensors as lines of bytes: a whole row where pixels follow each other without gaps, otherwise one pixel.
#pragma once
#include "engine/kernels/avx2/vector.h"
#include "engine/kernels/tensor.h"

namespace octet::kernels {
namespace {

// Row r, counted over n * h.
OCTET_INLINE uint8_t* row_of(const QTensor& t, int64_t r) {
  return t.data + r / t.h * t.image_stride + r % t.h * t.row_stride;
}

// Bytes of a pixel that producers write: whole blocks of 16 channels, or the 4 bytes of an image's pixel.
OCTET_INLINE int64_t written_bytes(const QTensor& t) {
  return t.c_pitch < 16 ? t.c_pitch : (t.c + 15) / 16 * 16;
}

// First `bytes` of 32 codes.
OCTET_INLINE void store_first(uint8_t* out, Y codes, int64_t bytes) {
  if (bytes >= 32) return store32(out, codes);
  alignas(32) uint8_t all[32];
  store32(all, codes);
  int64_t i = 0;
  if (bytes >= 16) store16(out, _mm256_castsi256_si128(codes)), i = 16;
  for (; i + 4 <= bytes; i += 4) std::memcpy(out + i, all + i, 4);
  for (; i < bytes; ++i) out[i] = all[i];
}

// out[i] = codes(i)[0 .. 32) for a line of `bytes`; codes() may read up to 31 bytes beyond it (kReadSlack).
template <typename Codes>
OCTET_INLINE void write_line(uint8_t* out, int64_t bytes, Codes&& codes) {
  int64_t i = 0;
  for (; i + 32 <= bytes; i += 32) store32(out + i, codes(i));
  if (i < bytes) store_first(out + i, codes(i), bytes - i);
}

// The second operand of a sum or product: one pixel may stand for an image, one image for a batch.
OCTET_INLINE bool is_one_pixel(const QTensor& b) {
  return b.h == 1 && b.w == 1;
}
OCTET_INLINE const uint8_t* broadcast_row(const QTensor& b, const QTensor& out, int64_t r) {
  return b.data + (b.n == 1 ? 0 : r / out.h) * b.image_stride + (is_one_pixel(b) ? 0 : r % out.h * b.row_stride);
}

}  // namespace
}  // namespace octet::kernels
