// Float convolution and matrix products for any vector width: tiles of 6 pixels x 2 vectors, FMA. F supplies the
// vectors:
//   V; kLanes; zero(); broadcast(float); load(p); load_first(p, n); store_first(p, v, n); fma(a, b, c); add; min; max.
#pragma once
#include <cstdint>

#include "engine/kernels/float_conv.h"
#include "engine/kernels/float_ops.h"

namespace octet::kernels {
namespace {

inline int64_t lesser(int64_t a, int64_t b) {
  return a < b ? a : b;
}

constexpr int64_t kTilePixels = 6;
constexpr int64_t kChunk = 1024;  // input channels per pass; taps outside the image read that many zeros
alignas(64) const float kZeros[kChunk] = {};

// One tile: `P` pixels; the channels of w1 follow those of w0. Input channels [0, in) of the group.
struct TileIn {
  const float* image = nullptr;  // of the batch's image, first channel of the group
  int64_t y = 0, x = 0;          // of the first pixel, in output coordinates
};

template <typename F, int P>
void tile(const FloatConvArgs& a, const TileIn& t, int64_t in, const float* w0, const float* w1, int64_t stride_w,
          typename F::V (&acc)[kTilePixels][2]) {
  const ConvGeometry& g = a.geometry;
  typename F::V sum[P][2];
#pragma GCC unroll 6
  for (int p = 0; p < P; ++p) sum[p][0] = sum[p][1] = F::zero();
  for (int64_t ky = 0; ky < g.kernel_h; ++ky) {
    const int64_t iy = t.y * g.stride_h - g.pad_top + ky * g.dilation_h;
    if (iy < 0 || iy >= a.in_h) continue;
    for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
      const int64_t tap = (ky * g.kernel_w + kx) * in * kChannelBlock;
      for (int64_t first = 0; first < in; first += kChunk) {
        const float* pixel[P];
#pragma GCC unroll 6
        for (int p = 0; p < P; ++p) {
          const int64_t ix = (t.x + p) * stride_w - g.pad_left + kx * g.dilation_w;
          pixel[p] = ix < 0 || ix >= a.in_w ? kZeros : t.image + (iy * a.in_w + ix) * g.in_channels + first;
        }
        const float *v0 = w0 + tap + first * kChannelBlock, *v1 = w1 + tap + first * kChannelBlock;
        const int64_t count = in - first < kChunk ? in - first : kChunk;
        for (int64_t ic = 0; ic < count; ++ic) {
          const typename F::V weight0 = F::load(v0 + ic * kChannelBlock), weight1 = F::load(v1 + ic * kChannelBlock);
#pragma GCC unroll 6
          for (int p = 0; p < P; ++p) {
            const typename F::V x = F::broadcast(pixel[p][ic]);
            sum[p][0] = F::fma(x, weight0, sum[p][0]);
            sum[p][1] = F::fma(x, weight1, sum[p][1]);
          }
        }
      }
    }
  }
#pragma GCC unroll 6
  for (int p = 0; p < P; ++p) acc[p][0] = sum[p][0], acc[p][1] = sum[p][1];
}

template <typename F>
void tile_of(int64_t pixels, const FloatConvArgs& a, const TileIn& t, int64_t in, const float* w0, const float* w1,
             typename F::V (&acc)[kTilePixels][2]) {
  const int64_t s = a.geometry.stride_w;
  switch (pixels) {
    case 1:
      return tile<F, 1>(a, t, in, w0, w1, s, acc);
    case 2:
      return tile<F, 2>(a, t, in, w0, w1, s, acc);
    case 3:
      return tile<F, 3>(a, t, in, w0, w1, s, acc);
    case 4:
      return tile<F, 4>(a, t, in, w0, w1, s, acc);
    case 5:
      return tile<F, 5>(a, t, in, w0, w1, s, acc);
    default:
      return tile<F, 6>(a, t, in, w0, w1, s, acc);
  }
}

// `lanes` values of channel `channel` on; `at` is their place in the output.
template <typename F>
void store_sum(typename F::V sum, const FloatEpilogue& e, int64_t channel, int64_t at, int64_t lanes, float* out) {
  if (lanes <= 0) return;
  if (e.bias) sum = F::add(sum, F::load_first(e.bias + channel, lanes));
  if (e.residual) sum = F::add(sum, F::load_first(e.residual + at, lanes));
  // The sum is the second operand: that is the result where one is NaN.
  F::store_first(out + at, F::min(F::broadcast(e.hi), F::max(F::broadcast(e.lo), sum)), lanes);
}

template <typename F>
void float_conv(const FloatConvArgs& args, Range rows, Range blocks) {
  const ConvGeometry& g = args.geometry;
  const int64_t in = g.in_channels / g.groups, out = g.out_channels / g.groups;
  const int64_t per_group = (out + kChannelBlock - 1) / kChannelBlock;
  const int64_t block_floats = g.kernel_h * g.kernel_w * in * kChannelBlock;
  FloatConvArgs a = args;
  int64_t first_pixel = 0;
  if (g.kernel_h == 1 && g.kernel_w == 1 && g.stride_h == 1 && g.stride_w == 1 && g.pad_top == 0 && g.pad_left == 0 &&
      args.out_h == args.in_h && args.out_w == args.in_w) {  // one line of pixels
    first_pixel = rows.begin * args.out_w;
    a.n = a.in_h = a.out_h = 1;
    a.in_w = a.out_w = (rows.end - rows.begin) * args.out_w;
    rows = {0, 1};
    if (a.in_w <= 0) return;
  }
  for (int64_t b = blocks.begin; b < blocks.end;) {
    const int64_t group = b / per_group, first = b % per_group * kChannelBlock, channel = group * out + first;
    const float* w0 = a.weights + b * block_floats;
    // The second vector: the other half of the block, or the next block of the group if the caller asked for it.
    const bool pair = F::kLanes == kChannelBlock && b + 1 < blocks.end && (b + 1) / per_group == group;
    const float* w1 = F::kLanes < kChannelBlock ? w0 + F::kLanes : pair ? w0 + block_floats : w0;
    const int64_t lanes0 = lesser(out - first, F::kLanes);
    const int64_t lanes1 = F::kLanes < kChannelBlock || pair ? lesser(out - first - F::kLanes, F::kLanes) : 0;
    for (int64_t r = rows.begin; r < rows.end; ++r)
      for (int64_t x = 0; x < a.out_w; x += kTilePixels) {
        const int64_t pixels = lesser(kTilePixels, a.out_w - x);
        const float* image = a.in + (first_pixel + r / a.out_h * a.in_h * a.in_w) * g.in_channels + group * in;
        typename F::V acc[kTilePixels][2];
        tile_of<F>(pixels, a, {image, r % a.out_h, x}, in, w0, w1, acc);
        for (int64_t p = 0; p < pixels; ++p) {
          const int64_t at = (first_pixel + r * a.out_w + x + p) * g.out_channels + channel;
          store_sum<F>(acc[p][0], a.epilogue, channel, at, lanes0, a.out);
          store_sum<F>(acc[p][1], a.epilogue, channel + F::kLanes, at + F::kLanes, lanes1, a.out);
        }
      }
    b += pair ? 2 : 1;
  }
}

template <typename F>
void float_depthwise(const FloatConvArgs& a, Range rows) {
  const ConvGeometry& g = a.geometry;
  const int64_t channels = g.out_channels;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* image = a.in + r / a.out_h * a.in_h * a.in_w * channels;
    for (int64_t x = 0; x < a.out_w; ++x)
      for (int64_t c = 0; c < channels; c += F::kLanes) {
        const int64_t lanes = lesser(F::kLanes, channels - c);
        typename F::V sum = F::zero();
        for (int64_t ky = 0; ky < g.kernel_h; ++ky)
          for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
            const int64_t iy = r % a.out_h * g.stride_h - g.pad_top + ky * g.dilation_h;
            const int64_t ix = x * g.stride_w - g.pad_left + kx * g.dilation_w;
            if (iy < 0 || iy >= a.in_h || ix < 0 || ix >= a.in_w) continue;
            sum = F::fma(F::load_first(image + (iy * a.in_w + ix) * channels + c, lanes),
                         F::load_first(a.weights + (ky * g.kernel_w + kx) * channels + c, lanes), sum);
          }
        store_sum<F>(sum, a.epilogue, c, (r * a.out_w + x) * channels + c, lanes, a.out);
      }
  }
}

// A product is a 1x1 convolution over m pixels.
template <typename F>
void float_gemm(const FloatGemmArgs& a, Range rows, Range blocks) {
  FloatConvArgs conv;
  conv.geometry.in_channels = a.k;
  conv.geometry.out_channels = a.n;
  conv.in = a.a;
  conv.out = a.c;
  conv.in_h = conv.out_h = a.m;
  conv.weights = a.weights;
  conv.epilogue = a.epilogue;
  float_conv<F>(conv, rows, blocks);
}

// `R` rows of the left factor times two vectors of columns of the right one, whose rows are `n` apart. Products are
// added in the order of k, as everywhere.
template <typename F, int R, bool kWhole>
void product_tile(const FloatMatMulArgs& a, const float* left, const float* right, float* out, int64_t lanes0,
                  int64_t lanes1) {
  using V = typename F::V;
  V sum[R][2];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = F::zero();
  for (int64_t k = 0; k < a.k; ++k) {
    const float* row = right + k * a.n;
    const V first = kWhole ? F::load(row) : F::load_first(row, lanes0);
    const V second = kWhole       ? F::load(row + F::kLanes)
                     : lanes1 > 0 ? F::load_first(row + F::kLanes, lanes1)
                                  : F::zero();
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const V x = F::broadcast(left[r * a.k + k]);
      sum[r][0] = F::fma(x, first, sum[r][0]);
      sum[r][1] = F::fma(x, second, sum[r][1]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    F::store_first(out + r * a.n, sum[r][0], lanes0);
    if (lanes1 > 0) F::store_first(out + r * a.n + F::kLanes, sum[r][1], lanes1);
  }
}

constexpr int kTileRows = 6;

template <typename F, bool kWhole>
void product_rows(const FloatMatMulArgs& a, const float* left, const float* right, float* out, int64_t rows,
                  int64_t lanes0, int64_t lanes1) {
  for (; rows >= kTileRows; rows -= kTileRows, left += kTileRows * a.k, out += kTileRows * a.n)
    product_tile<F, kTileRows, kWhole>(a, left, right, out, lanes0, lanes1);
  for (; rows >= 2; rows -= 2, left += 2 * a.k, out += 2 * a.n)
    product_tile<F, 2, kWhole>(a, left, right, out, lanes0, lanes1);
  if (rows > 0) product_tile<F, 1, kWhole>(a, left, right, out, lanes0, lanes1);
}

// Denormal numbers count as zero while this lives: an activation may have millions, each a hundred times as slow.
class DenormalsAreZero {
 public:
  DenormalsAreZero() : before_(__builtin_ia32_stmxcsr()) {
    __builtin_ia32_ldmxcsr(before_ | kFlushToZero | kDenormalsAreZero);
  }
  ~DenormalsAreZero() { __builtin_ia32_ldmxcsr(before_); }
  DenormalsAreZero(const DenormalsAreZero&) = delete;
  DenormalsAreZero& operator=(const DenormalsAreZero&) = delete;

 private:
  static constexpr unsigned kFlushToZero = 1u << 15, kDenormalsAreZero = 1u << 6;
  const unsigned before_;
};

template <typename F>
void float_matmul(const FloatMatMulArgs& a, Range rows) {
  const DenormalsAreZero guard;
  constexpr int64_t kColumns = 2 * F::kLanes;
  for (int64_t r = rows.begin; r < rows.end;) {
    const int64_t batch = r / a.m, in_batch = r % a.m, count = lesser(rows.end - r, a.m - in_batch);
    const float* left = a.a + batch * a.a_batch_stride + in_batch * a.k;
    const float* right = a.b + batch * a.b_batch_stride;
    float* out = a.c + r * a.n;
    for (int64_t j = 0; j < a.n; j += kColumns) {
      const int64_t lanes0 = lesser(F::kLanes, a.n - j), lanes1 = lesser(F::kLanes, a.n - j - lanes0);
      if (lanes1 == F::kLanes)
        product_rows<F, true>(a, left, right + j, out + j, count, lanes0, lanes1);
      else
        product_rows<F, false>(a, left, right + j, out + j, count, lanes0, lanes1);
    }
    r += count;
  }
}

}  // namespace
}  // namespace octet::kernels
