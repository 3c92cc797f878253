// Depthwise convolution with vpdpbusd. A dot product multiplies four bytes per dword: here they are up to four taps of
// a kernel row ("quad"), interleaved from as many loads of 64 channels by vpunpck. The unpacks interleave within
// 128-bit lanes; weights, start values and multipliers are brought into that order once per 64 channels, and
// vpackssdw/vpackuswb of the epilogue undo it. With 16 or 32 channels and stride 1 a vector holds 4 or 2 neighbouring
// pixels instead.
#include "engine/kernels/avx512_vnni/finish.h"
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/vector.h"

namespace octet::kernels {
namespace {

constexpr int64_t kMaxQuads = 32;  // kernel rows x quads per row; larger kernels take the general path

struct Quad {
  Z v[4];
};

OCTET_INLINE Quad interleave(Z t0, Z t1, Z t2, Z t3) {
  const Z l01 = _mm512_unpacklo_epi8(t0, t1), h01 = _mm512_unpackhi_epi8(t0, t1);
  const Z l23 = _mm512_unpacklo_epi8(t2, t3), h23 = _mm512_unpackhi_epi8(t2, t3);
  return {{_mm512_unpacklo_epi16(l01, l23), _mm512_unpackhi_epi16(l01, l23), _mm512_unpacklo_epi16(h01, h23),
           _mm512_unpackhi_epi16(h01, h23)}};
}

// Everything that belongs to one vector of 64 bytes of a pixel (or of several pixels).
struct alignas(64) Block {
  Z weights[kMaxQuads][4];
  Z start[4];
  __m512 multiplier[4];
  __mmask64 mask;  // real bytes
};

// Four vectors of 16 dwords in channel order -> the order in which interleave() leaves the channels.
OCTET_INLINE void to_lane_order(const Z (&n)[4], Z (&out)[4]) {
  const Z a = _mm512_shuffle_i32x4(n[0], n[1], 0x44), b = _mm512_shuffle_i32x4(n[0], n[1], 0xee);
  const Z c = _mm512_shuffle_i32x4(n[2], n[3], 0x44), d = _mm512_shuffle_i32x4(n[2], n[3], 0xee);
  out[0] = _mm512_shuffle_i32x4(a, c, 0x88);
  out[1] = _mm512_shuffle_i32x4(a, c, 0xdd);
  out[2] = _mm512_shuffle_i32x4(b, d, 0x88);
  out[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

struct Job {
  const ConvArgs* args;
  int64_t quads_per_row;
  int64_t padded;    // channels, a multiple of 16
  bool pixel_lanes;  // a vector holds several pixels
};

void make_block(const Job& j, int64_t channel, Block& b) {
  const ConvGeometry& g = j.args->geometry;
  const auto source = [&](int64_t part) __attribute__((always_inline)) {  // channel of the part-th 16 bytes, or -1
    const int64_t c = j.pixel_lanes ? part * 16 % j.padded : channel + part * 16;
    return c < j.padded ? c : -1;
  };
  const auto tap = [&](int64_t ky, int64_t kx) __attribute__((always_inline)) {
    alignas(64) int8_t bytes[64] = {};
    if (kx < g.kernel_w)
      for (int64_t part = 0; part < 4; ++part)
        if (source(part) >= 0)
          store16(bytes + part * 16, load16(j.args->weights + (ky * g.kernel_w + kx) * j.padded + source(part)));
    return _mm512_load_si512(bytes);
  };
  for (int64_t ky = 0; ky < g.kernel_h; ++ky)
    for (int64_t q = 0; q < j.quads_per_row; ++q) {
      const Quad w = interleave(tap(ky, q * 4), tap(ky, q * 4 + 1), tap(ky, q * 4 + 2), tap(ky, q * 4 + 3));
      for (int i = 0; i < 4; ++i) b.weights[ky * j.quads_per_row + q][i] = w.v[i];
    }
  Z start[4], multiplier[4], ordered[4];
  int real = 0;
  for (int64_t part = 0; part < 4; ++part) {
    const int64_t c = source(part);
    real += c >= 0;
    start[part] = c < 0 ? _mm512_setzero_si512() : _mm512_loadu_si512(j.args->acc_init + c);
    multiplier[part] = c < 0 ? _mm512_setzero_si512() : _mm512_loadu_si512(j.args->epilogue.multiplier + c);
  }
  b.mask = real == 4 ? ~0ull : (1ull << (real * 16)) - 1;
  to_lane_order(start, b.start);
  to_lane_order(multiplier, ordered);
  for (int i = 0; i < 4; ++i) b.multiplier[i] = _mm512_castsi512_ps(ordered[i]);
}

OCTET_INLINE Z codes(const Z (&acc)[4], const Block& b, const Constants& k) {
  Z v[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) v[i] = scale<Sum::kNone>(acc[i], b.multiplier[i], nullptr, k);
  const Z low = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), k.zero_point16);
  const Z high = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), k.zero_point16);
  return _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(low, high), k.low8), k.high8);
}

// Stride 1, kernel K x K: walks down a column; the quads of one input row are built once and feed K output rows.
template <int K>
void slide(const Block& block, const uint8_t* in, int64_t in_row, int64_t tap_step, uint8_t* out, int64_t out_row,
           int64_t height, __mmask64 mask, const Constants& k) {
  constexpr int kQuads = (K + 3) / 4;
  Z acc[K][4];  // acc[i] still lacks i + 1 input rows
#pragma GCC unroll 8
  for (int i = 0; i < K; ++i)
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) acc[i][g] = block.start[g];
  const auto add_row = [&](const uint8_t* p) __attribute__((always_inline)) {
    const auto tap = [&](int kx) __attribute__((always_inline)) {
      return _mm512_loadu_si512(p + (kx < K ? kx : K - 1) * tap_step);
    };
#pragma GCC unroll 2
    for (int q = 0; q < kQuads; ++q) {
      const Z t0 = tap(4 * q);
      const Quad x =
          4 * q + 1 >= K ? interleave(t0, t0, t0, t0) : interleave(t0, tap(4 * q + 1), tap(4 * q + 2), tap(4 * q + 3));
#pragma GCC unroll 8
      for (int i = 0; i < K; ++i)
#pragma GCC unroll 4
        for (int g = 0; g < 4; ++g)
          acc[i][g] = _mm512_dpbusd_epi32(acc[i][g], x.v[g], block.weights[(K - 1 - i) * kQuads + q][g]);
    }
  };
  const auto shift = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int i = 0; i + 1 < K; ++i)
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) acc[i][g] = acc[i + 1][g];
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) acc[K - 1][g] = block.start[g];
  };
  for (int64_t y = 0; y < K - 1; ++y, in += in_row) {
    add_row(in);
    shift();
  }
  for (int64_t y = 0; y < height; ++y, in += in_row, out += out_row) {
    add_row(in);
    _mm512_mask_storeu_epi8(out, mask, codes(acc[0], block, k));
    shift();
  }
}

// Any kernel and stride: builds all quads for every output pixel.
OCTET_INLINE Z gather(const Block& block, const uint8_t* in, int64_t kernel_h, int64_t row_step, int64_t quads,
                      const int64_t (*taps)[4], const Constants& k) {
  Z acc[4] = {block.start[0], block.start[1], block.start[2], block.start[3]};
  const Z(*w)[4] = block.weights;
  for (int64_t ky = 0; ky < kernel_h; ++ky, in += row_step)
    for (int64_t q = 0; q < quads; ++q, ++w) {
      const int64_t* t = taps[q];
      const Quad x = interleave(_mm512_loadu_si512(in + t[0]), _mm512_loadu_si512(in + t[1]),
                                _mm512_loadu_si512(in + t[2]), _mm512_loadu_si512(in + t[3]));
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) acc[g] = _mm512_dpbusd_epi32(acc[g], x.v[g], (*w)[g]);
    }
  return codes(acc, block, k);
}

// Residuals, float outputs and very large kernels: 16 channels a vector, one tap per dword, the common epilogue.
void general(const ConvArgs& a, Range rows) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const Constants constants = make_constants(e);
  const int64_t padded = (g.out_channels + 15) / 16 * 16;
  constexpr int64_t kPixels = 8;
  alignas(64) int32_t acc[kPixels * 16];
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t c = 0; c < padded; c += 16)
      for (int64_t x = 0; x < e.out.w; x += kPixels) {
        const int64_t n = r / e.out.h, y = r % e.out.h, pixels = smaller(kPixels, e.out.w - x);
        for (int64_t p = 0; p < pixels; ++p) {
          const uint8_t* in = a.in.data + n * a.in.image_stride + (y * g.stride_h - g.pad_top) * a.in.row_stride +
                              ((x + p) * g.stride_w - g.pad_left) * a.in.c_pitch + c;
          Z sum = _mm512_loadu_si512(a.acc_init + c);
          const int8_t* w = a.weights + c;
          for (int64_t ky = 0; ky < g.kernel_h; ++ky)
            for (int64_t kx = 0; kx < g.kernel_w; ++kx, w += padded)
              sum = _mm512_dpbusd_epi32(sum,
                                        _mm512_cvtepu8_epi32(load16(in + ky * g.dilation_h * a.in.row_stride +
                                                                    kx * g.dilation_w * a.in.c_pitch)),
                                        _mm512_cvtepi8_epi32(load16(w)));
          _mm512_store_si512(acc + p * 16, sum);
        }
        finish<1>({acc, pixels, c, n, y, x}, e, constants);
      }
}

}  // namespace

void depthwise_avx512_vnni(const ConvArgs& a, Range rows) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const int64_t quads = (g.kernel_w + 3) / 4;
  if (e.out.data == nullptr || e.residual.data || e.out.c_pitch < 16 || a.in.c_pitch < 16 ||
      quads * g.kernel_h > kMaxQuads)
    return general(a, rows);
  const Constants constants = make_constants(e);
  Job job{&a, quads, (g.out_channels + 15) / 16 * 16, false};
  job.pixel_lanes = g.stride_w == 1 && (job.padded == 16 || job.padded == 32) && a.in.c_pitch == job.padded &&
                    e.out.c_pitch == job.padded;
  const int64_t pixels_per_vector = job.pixel_lanes ? 64 / job.padded : 1;
  const int64_t tap_step = g.dilation_w * a.in.c_pitch, row_step = g.dilation_h * a.in.row_stride;
  int64_t taps[kMaxQuads][4];
  for (int64_t q = 0; q < quads; ++q)
    for (int64_t i = 0; i < 4; ++i) taps[q][i] = smaller(q * 4 + i, g.kernel_w - 1) * tap_step;
  const bool square = g.kernel_h == g.kernel_w && g.stride_h == 1 && g.dilation_h == 1;

  Block block;
  for (int64_t c = 0; c < (job.pixel_lanes ? 1 : job.padded); c += 64) {
    make_block(job, c, block);
    for (int64_t r = rows.begin; r < rows.end;) {
      const int64_t n = r / e.out.h, y = r % e.out.h, height = smaller(rows.end - r, e.out.h - y);
      const uint8_t* in = a.in.data + n * a.in.image_stride + (y * g.stride_h - g.pad_top) * a.in.row_stride -
                          g.pad_left * a.in.c_pitch + c;
      uint8_t* out = e.out.data + n * e.out.image_stride + y * e.out.row_stride + c;
      const auto mask_at = [&](int64_t x) {
        const int64_t left = (e.out.w - x) * job.padded;
        return !job.pixel_lanes || left >= 64 ? block.mask : (1ull << left) - 1;
      };
      if (square && (g.kernel_w == 3 || g.kernel_w == 5)) {
        const auto column = g.kernel_w == 3 ? slide<3> : slide<5>;
        for (int64_t x = 0; x < e.out.w; x += pixels_per_vector)
          column(block, in + x * g.stride_w * a.in.c_pitch, a.in.row_stride, tap_step, out + x * e.out.c_pitch,
                 e.out.row_stride, height, mask_at(x), constants);
      } else {
        for (int64_t i = 0; i < height; ++i)
          for (int64_t x = 0; x < e.out.w; x += pixels_per_vector)
            _mm512_mask_storeu_epi8(out + i * e.out.row_stride + x * e.out.c_pitch, mask_at(x),
                                    gather(block, in + i * g.stride_h * a.in.row_stride + x * g.stride_w * a.in.c_pitch,
                                           g.kernel_h, row_step, quads, taps, constants));
      }
      if (e.table)
        for (int64_t i = 0; i < height; ++i)
          for (int64_t x = 0; x < e.out.w; ++x) {
            uint8_t* p = out + i * e.out.row_stride + x * e.out.c_pitch;
            look_up(e.table, p, p, smaller(64, job.padded - c));
          }
      r += height;
    }
  }
}

}  // namespace octet::kernels
