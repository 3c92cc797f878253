// Sums and products of two u8 tensors, copies, tables, nearest resize and dequantization with 256-bit vectors.
#include <cmath>
#include <optional>

#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/avx2/lines.h"
#include "engine/kernels/avx2/lookup.h"

namespace octet::kernels {
namespace {

// Below this the rounded result of two operands' codes fits int32 (65025 * kLargest < 2^31), and the limits of the
// packs do the rest; networks have multipliers around 1.
constexpr float kLargest = 30000.0f;

// float(code - zero point) of 8 codes.
OCTET_INLINE __m256 centered(const uint8_t* p, Y zero_point) {
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_cvtepu8_epi32(load8(p)), zero_point));
}

// Applies value(left, right) -> rounded dwords to 8 floats at a time.
template <typename Value>
OCTET_INLINE void combine(const QTensor& a, const QTensor& b, const QTensor& out, const Limits& limits,
                          const uint8_t* table, Range rows, Value&& value) {
  const std::optional<Lookup> lookup = table ? std::optional<Lookup>(table) : std::nullopt;
  const Y a_zero = _mm256_set1_epi32(a.zero_point), b_zero = _mm256_set1_epi32(b.zero_point);
  const int64_t bytes = written_bytes(out);
  const bool one_pixel = is_one_pixel(b);
  const auto finish = [&](Y v0, Y v1, Y v2, Y v3) __attribute__((always_inline)) {
    const Y codes = limits.pack(v0, v1, v2, v3);
    return lookup ? (*lookup)(codes) : codes;
  };
  const auto line = [&](const uint8_t* left, const uint8_t* right, uint8_t* to, int64_t n)
      __attribute__((always_inline)) {
    write_line(
        to, n, [&](int64_t i) __attribute__((always_inline)) {
          const auto eight = [&](int64_t j) __attribute__((always_inline)) {
            return value(centered(left + i + j, a_zero), centered(right + i + j, b_zero));
          };
          return finish(eight(0), eight(8), eight(16), eight(24));
        });
  };
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* left = row_of(a, r);
    const uint8_t* right = broadcast_row(b, out, r);
    uint8_t* to = row_of(out, r);
    if (one_pixel) {  // 32 channels of the right operand stay in registers
      for (int64_t c = 0; c < bytes; c += 32) {
        const __m256 b0 = centered(right + c, b_zero), b1 = centered(right + c + 8, b_zero),
                     b2 = centered(right + c + 16, b_zero), b3 = centered(right + c + 24, b_zero);
        for (int64_t x = 0; x < out.w; ++x) {
          const uint8_t* p = left + x * a.c_pitch + c;
          store_first(to + x * out.c_pitch + c,
                      finish(value(centered(p, a_zero), b0), value(centered(p + 8, a_zero), b1),
                             value(centered(p + 16, a_zero), b2), value(centered(p + 24, a_zero), b3)),
                      bytes - c);
        }
      }
    } else if (a.c_pitch == bytes && b.c_pitch == bytes && out.c_pitch == bytes) {
      line(left, right, to, bytes * out.w);
    } else {
      for (int64_t x = 0; x < out.w; ++x)
        line(left + x * a.c_pitch, right + x * b.c_pitch, to + x * out.c_pitch, bytes);
    }
  }
}

}  // namespace

void add_avx2(const AddArgs& a, Range rows) {
  if (!(std::fabs(a.a_multiplier) < kLargest && std::fabs(a.b_multiplier) < kLargest))
    return kernels(Isa::kScalar).add(a, rows);
  const __m256 am = _mm256_set1_ps(a.a_multiplier), bm = _mm256_set1_ps(a.b_multiplier);
  combine(
      a.a, a.b, a.out, Limits(a.lo, a.hi, a.out.zero_point), a.table,
      rows, [&](__m256 x, __m256 y) __attribute__((always_inline)) {
        return _mm256_cvtps_epi32(_mm256_add_ps(_mm256_mul_ps(x, am), _mm256_mul_ps(y, bm)));
      });
}

void mul_avx2(const MulArgs& a, Range rows) {
  if (!(std::fabs(a.multiplier) < kLargest)) return kernels(Isa::kScalar).mul(a, rows);
  const __m256 m = _mm256_set1_ps(a.multiplier);
  // Products of two 9-bit numbers are exact in float.
  combine(
      a.a, a.b, a.out, Limits(a.lo, a.hi, a.out.zero_point), nullptr,
      rows, [&](__m256 x, __m256 y) __attribute__((always_inline)) {
        return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_mul_ps(x, y), m));
      });
}

void copy_avx2(const CopyArgs& a, Range rows) {
  const bool dense = a.in.c_pitch == a.out.c && a.out.c_pitch == a.out.c;
  const int64_t lines = dense ? 1 : a.out.w, bytes = dense ? a.out.w * a.out.c : a.out.c;
  const auto each_line = [&](auto&& codes) __attribute__((always_inline)) {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const uint8_t* in = row_of(a.in, r);
      uint8_t* out = row_of(a.out, r);
      for (int64_t x = 0; x < lines; ++x, in += a.in.c_pitch, out += a.out.c_pitch)
        write_line(
            out, bytes, [&](int64_t i) __attribute__((always_inline)) { return codes(load32(in + i)); });
    }
  };
  if (a.table) {
    const Lookup lookup(a.table);
    each_line(lookup);
  } else {
    each_line([](Y codes) __attribute__((always_inline)) { return codes; });
  }
}

// 32 channels at a time, so that their numbers stay in registers.
void scale_shift_codes_avx2(const ScaleShiftCodesArgs& a, Range rows) {
  const Limits limits(a.lo, a.hi, 0);
  int64_t c = 0;
  for (; c + 32 <= a.out.c; c += 32) {
    __m256 m[4], b[4];
    for (int64_t i = 0; i < 4; ++i) {
      m[i] = _mm256_loadu_ps(a.multiplier + c + 8 * i);
      b[i] = _mm256_loadu_ps(a.offset + c + 8 * i);
    }
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const uint8_t* in = row_of(a.in, r) + c;
      uint8_t* out = row_of(a.out, r) + c;
      for (int64_t x = 0; x < a.out.w; ++x, in += a.in.c_pitch, out += a.out.c_pitch) {
        Y v[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          const __m256 q = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load8(in + 8 * i)));
          v[i] = _mm256_cvtps_epi32(_mm256_add_ps(_mm256_mul_ps(q, m[i]), b[i]));
        }
        store32(out, limits.pack(v[0], v[1], v[2], v[3]));
      }
    }
  }
  if (c == a.out.c) return;
  ScaleShiftCodesArgs rest = a;
  rest.in.data += c, rest.out.data += c, rest.multiplier += c, rest.offset += c;
  rest.in.c -= c, rest.out.c -= c;
  kernels(Isa::kScalar).scale_shift_codes(rest, rows);
}

void resize_nearest_avx2(const ResizeNearestArgs& a, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* in = a.in.data + r / a.out.h * a.in.image_stride + a.y_index[r % a.out.h] * a.in.row_stride;
    uint8_t* out = row_of(a.out, r);
    for (int64_t x = 0; x < a.out.w; ++x) {
      const uint8_t* from = in + a.x_index[x] * a.in.c_pitch;
      write_line(
          out + x * a.out.c_pitch, a.out.c, [&](int64_t i) __attribute__((always_inline)) { return load32(from + i); });
    }
  }
}

// Two groups, as ShuffleNetV2 has them, are bytes in turns.
void channel_shuffle_avx2(const ChannelShuffleArgs& a, Range rows) {
  if (a.groups != 2) return kernels(Isa::kScalar).channel_shuffle(a, rows);
  const int64_t each = a.in.c / 2;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* in = row_of(a.in, r);
    uint8_t* out = row_of(a.out, r);
    for (int64_t x = 0; x < a.out.w; ++x, in += a.in.c_pitch, out += a.out.c_pitch) {
      int64_t i = 0;
      for (; i + 16 <= each; i += 16) {
        const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i)),
                      second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + each + i));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i), _mm_unpacklo_epi8(first, second));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i + 16), _mm_unpackhi_epi8(first, second));
      }
      for (; i < each; ++i) out[2 * i] = in[i], out[2 * i + 1] = in[each + i];
    }
  }
}

void dequantize_avx2(const DequantizeArgs& a, Range rows) {
  const FloatStrides& s = a.out_strides;
  if (s.c != 1) return kernels(Isa::kScalar).dequantize(a, rows);
  const __m256 scale = _mm256_set1_ps(a.scale);
  const Y zero_point = _mm256_set1_epi32(a.in.zero_point);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* in = row_of(a.in, r);
    float* out = a.out + r / a.in.h * s.n + r % a.in.h * s.h;
    for (int64_t x = 0; x < a.in.w; ++x)
      for (int64_t c = 0; c < a.in.c; c += 8)
        _mm256_maskstore_ps(out + x * s.w + c, first_floats(a.in.c - c),
                            _mm256_mul_ps(centered(in + x * a.in.c_pitch + c, zero_point), scale));
  }
}

}  // namespace octet::kernels
