// Pooling of u8 tensors with 512-bit vectors.
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/lines.h"

namespace octet::kernels {
namespace {

struct Taps {
  int64_t begin, end;
};
OCTET_INLINE Taps taps_inside(int64_t start, int64_t dilation, int64_t kernel, int64_t low, int64_t high) {
  Taps t{0, kernel};
  while (t.begin < t.end && start + t.begin * dilation < low) ++t.begin;
  while (t.end > t.begin && start + (t.end - 1) * dilation >= high) --t.end;
  return t;
}

// The largest codes of rows [rows.begin, rows.end) of a column; in: row 0.
OCTET_INLINE Z column_max(const uint8_t* in, int64_t step, Taps rows) {
  Z best = _mm512_loadu_si512(in + rows.begin * step);
  for (int64_t i = rows.begin + 1; i < rows.end; ++i) best = _mm512_max_epu8(best, _mm512_loadu_si512(in + i * step));
  return best;
}

// One output row of 3 columns and stride 2, the window of residual networks: every other column serves two pixels.
void max_pool_row3(const MaxPoolArgs& a, const uint8_t* image, int64_t y0, Taps ky, uint8_t* out, int64_t bytes) {
  const int64_t step = a.window.dilation_h * a.in.row_stride;
  const uint8_t* in = image + y0 * a.in.row_stride;
  const Z nothing = _mm512_setzero_si512();
  for (int64_t c = 0; c < bytes; c += 64) {
    const __mmask64 mask = first_bytes(bytes - c);
    const auto column = [&](int64_t x) __attribute__((always_inline)) {
      return x < 0 || x >= a.in.w ? nothing : column_max(in + x * a.in.c_pitch + c, step, ky);
    };
    Z first = column(-a.window.pad_left);
    for (int64_t x = 0; x < a.out.w; ++x) {
      const int64_t x0 = 2 * x - a.window.pad_left;
      const Z last = column(x0 + 2);
      const Z best = _mm512_max_epu8(_mm512_max_epu8(first, column(x0 + 1)), last);
      _mm512_mask_storeu_epi8(out + x * a.out.c_pitch + c, mask, best);
      first = last;
    }
  }
}

}  // namespace

void max_pool_avx512(const MaxPoolArgs& a, Range rows) {
  const PoolWindow& p = a.window;
  const int64_t bytes = written_bytes(a.out);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t y0 = r % a.out.h * p.stride_h - p.pad_top;
    const Taps ky = taps_inside(y0, p.dilation_h, p.kernel_h, 0, a.in.h);
    const uint8_t* image = a.in.data + r / a.out.h * a.in.image_stride;
    uint8_t* out = row_of(a.out, r);
    if (p.kernel_w == 3 && p.stride_w == 2 && p.dilation_w == 1 && ky.end > ky.begin) {
      max_pool_row3(a, image, y0, ky, out, bytes);
      continue;
    }
    for (int64_t x = 0; x < a.out.w; ++x) {
      const int64_t x0 = x * p.stride_w - p.pad_left;
      const Taps kx = taps_inside(x0, p.dilation_w, p.kernel_w, 0, a.in.w);
      for (int64_t c = 0; c < bytes; c += 64) {
        Z best = _mm512_setzero_si512();
        for (int64_t i = ky.begin; i < ky.end; ++i) {
          const uint8_t* in = image + (y0 + i * p.dilation_h) * a.in.row_stride + x0 * a.in.c_pitch + c;
          for (int64_t j = kx.begin; j < kx.end; ++j)
            best = _mm512_max_epu8(best, _mm512_loadu_si512(in + j * p.dilation_w * a.in.c_pitch));
        }
        _mm512_mask_storeu_epi8(out + x * a.out.c_pitch + c, first_bytes(bytes - c), best);
      }
    }
  }
}

void average_pool_avx512(const AveragePoolArgs& a, Range rows) {
  const PoolWindow& p = a.window;
  const Constants k = limits(a.lo, a.hi, a.out.zero_point);
  const int64_t bytes = written_bytes(a.out);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t y0 = r % a.out.h * p.stride_h - p.pad_top;
    const Taps ky = taps_inside(y0, p.dilation_h, p.kernel_h, 0, a.in.h);
    const Taps all_y = taps_inside(y0, p.dilation_h, p.kernel_h, -p.pad_top, a.in.h + p.pad_bottom);
    const uint8_t* image = a.in.data + r / a.out.h * a.in.image_stride;
    for (int64_t x = 0; x < a.out.w; ++x) {
      const int64_t x0 = x * p.stride_w - p.pad_left;
      const Taps kx = taps_inside(x0, p.dilation_w, p.kernel_w, 0, a.in.w);
      const Taps all_x = taps_inside(x0, p.dilation_w, p.kernel_w, -p.pad_left, a.in.w + p.pad_right);
      const int64_t inside = (ky.end - ky.begin) * (kx.end - kx.begin);
      const int64_t all = a.count_include_pad ? (all_y.end - all_y.begin) * (all_x.end - all_x.begin) : inside;
      const float count = static_cast<float>(all > 1 ? all : 1);
      const __m512 m = _mm512_set1_ps(a.scale_in / (count * a.scale_out));  // numerics::average_multiplier
      const Z zero = _mm512_set1_epi32(static_cast<int32_t>(inside * a.in.zero_point));
      for (int64_t c = 0; c < bytes; c += 16) {
        Z sum = _mm512_setzero_si512();
        for (int64_t i = ky.begin; i < ky.end; ++i) {
          const uint8_t* in = image + (y0 + i * p.dilation_h) * a.in.row_stride + x0 * a.in.c_pitch + c;
          for (int64_t j = kx.begin; j < kx.end; ++j)
            sum = _mm512_add_epi32(sum, _mm512_cvtepu8_epi32(load16(in + j * p.dilation_w * a.in.c_pitch)));
        }
        const Z v = scale<Sum::kNone>(_mm512_sub_epi32(sum, zero), m, nullptr, k);
        store_lane<0>(row_of(a.out, r) + x * a.out.c_pitch + c, pack(v, v, v, v, k), bytes < 16);
      }
    }
  }
}

namespace {

// Sums of the 64 bytes of every vector of an image, byte position by byte position. Words are summed as they are (low +
// 256 high, modulo 2^16) and their high bytes once more, which gives both after at most 257 vectors.
class ByteSums {
 public:
  OCTET_INLINE void add(Z bytes) {
    words_ = _mm512_add_epi16(words_, bytes);
    high_ = _mm512_add_epi16(high_, _mm512_srli_epi16(bytes, 8));
  }
  static constexpr int64_t kMaxAdds = 256;
  void flush() {
    const Z low = _mm512_sub_epi16(words_, _mm512_slli_epi16(high_, 8));
    even_[0] = _mm512_add_epi32(even_[0], _mm512_cvtepu16_epi32(_mm512_castsi512_si256(low)));
    even_[1] = _mm512_add_epi32(even_[1], _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(low, 1)));
    odd_[0] = _mm512_add_epi32(odd_[0], _mm512_cvtepu16_epi32(_mm512_castsi512_si256(high_)));
    odd_[1] = _mm512_add_epi32(odd_[1], _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(high_, 1)));
    words_ = high_ = _mm512_setzero_si512();
  }
  void store(int32_t* sums) const {
    alignas(64) int32_t even[32], odd[32];
    for (int i = 0; i < 2; ++i) {
      _mm512_store_si512(even + i * 16, even_[i]);
      _mm512_store_si512(odd + i * 16, odd_[i]);
    }
    for (int i = 0; i < 32; ++i) sums[2 * i] = even[i], sums[2 * i + 1] = odd[i];
  }

 private:
  Z words_ = _mm512_setzero_si512(), high_ = words_;
  Z even_[2] = {words_, words_}, odd_[2] = {words_, words_};
};

// sums[i] of channel c + i of image n for up to `N` * 64 channels.
template <int N>
void sum_pixels(const QTensor& t, int64_t n, int64_t c, int32_t* sums) {
  ByteSums total[N];
  int64_t room = ByteSums::kMaxAdds;
  for (int64_t y = 0; y < t.h; ++y) {
    const uint8_t* in = t.data + n * t.image_stride + y * t.row_stride + c;
    for (int64_t x = 0; x < t.w;) {
      const int64_t end = smaller(t.w, x + room);
      room -= end - x;
      for (; x < end; ++x)
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i) total[i].add(_mm512_loadu_si512(in + x * t.c_pitch + i * 64));
      if (room > 0) continue;
      for (ByteSums& part : total) part.flush();
      room = ByteSums::kMaxAdds;
    }
  }
  for (int i = 0; i < N; ++i) {
    total[i].flush();
    total[i].store(sums + i * 64);
  }
}

// The same where pixels have 16 or 32 bytes and a vector holds four or two: all channels from c on.
void sum_small_pixels(const QTensor& t, int64_t n, int64_t c, int32_t* sums) {
  ByteSums total;
  int64_t room = ByteSums::kMaxAdds;
  const int64_t bytes = t.w * t.c_pitch;
  for (int64_t y = 0; y < t.h; ++y) {
    const uint8_t* in = t.data + n * t.image_stride + y * t.row_stride;
    for (int64_t i = 0; i < bytes; i += 64) {
      total.add(_mm512_maskz_loadu_epi8(first_bytes(bytes - i), in + i));
      if (--room == 0) total.flush(), room = ByteSums::kMaxAdds;
    }
  }
  total.flush();
  int32_t parts[64];
  total.store(parts);
  for (int64_t i = c; i < t.c_pitch; ++i) {
    sums[i - c] = 0;
    for (int64_t p = 0; p < 64; p += t.c_pitch) sums[i - c] += parts[p + i];
  }
}

// Returns how many channels it summed, at most `left`, rounded up to whole vectors.
int64_t sum_image(const QTensor& t, int64_t n, int64_t c, int64_t left, int32_t* sums) {
  if (t.c_pitch == 16 || t.c_pitch == 32) {
    sum_small_pixels(t, n, c, sums);
    return t.c_pitch - c;
  }
  switch ((smaller(left, 256) + 63) / 64) {
    case 1:
      sum_pixels<1>(t, n, c, sums);
      return 64;
    case 2:
      sum_pixels<2>(t, n, c, sums);
      return 128;
    case 3:
      sum_pixels<3>(t, n, c, sums);
      return 192;
    default:
      sum_pixels<4>(t, n, c, sums);
      return 256;
  }
}

}  // namespace

void global_average_avx512(const GlobalAverageArgs& a, Range blocks) {
  const int64_t per_image = (a.in.c + 15) / 16, pixels = a.in.h * a.in.w;
  const float count = static_cast<float>(static_cast<int32_t>(pixels));
  const __m512 m = _mm512_set1_ps(a.scale_in / (count * (a.out.data ? a.scale_out : 1.0f)));
  const Z zero = _mm512_set1_epi32(static_cast<int32_t>(pixels * a.in.zero_point));
  const Constants k = limits(a.lo, a.hi, a.out.zero_point);
  for (int64_t b = blocks.begin; b < blocks.end;) {
    const int64_t n = b / per_image, left = smaller(blocks.end - b, per_image - b % per_image);
    alignas(64) int32_t sums[256];
    const int64_t together = smaller(left, sum_image(a.in, n, b % per_image * 16, left * 16, sums) / 16);
    for (int64_t i = 0; i < together; ++i, ++b) {
      const int64_t c = b % per_image * 16;
      const Z sum = _mm512_sub_epi32(_mm512_load_si512(sums + i * 16), zero);
      if (a.out.data) {
        const Z v = scale<Sum::kNone>(sum, m, nullptr, k);
        store_lane<0>(a.out.data + n * a.out.image_stride + c, pack(v, v, v, v, k), a.out.c_pitch < 16);
      } else {
        const auto mask = static_cast<__mmask16>((1u << smaller(16, a.in.c - c)) - 1);
        _mm512_mask_storeu_ps(a.float_out + n * a.in.c + c, mask, _mm512_mul_ps(_mm512_cvtepi32_ps(sum), m));
      }
    }
  }
}

}  // namespace octet::kernels
