// Float convolutions and products against sums in double. A sum of k products of magnitude |x||w| rounds at most by
// about k * eps * sum |x w| (Higham); that is the tolerance.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engine/kernels/kernel_table.h"

namespace octet::kernels {
namespace {

int64_t pick(std::mt19937& rng, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}
std::vector<float> random_floats(std::mt19937& rng, int64_t n) {
  std::normal_distribution<float> normal;
  std::vector<float> v(static_cast<size_t>(n));
  for (auto& x : v) x = normal(rng);
  return v;
}

struct Sum {
  double value = 0, magnitude = 0;
  int64_t terms = 1;
  void add(double a, double b) { value += a * b, magnitude += std::fabs(a * b), ++terms; }
  double tolerance() const {
    return static_cast<double>(terms + 2) * std::numeric_limits<float>::epsilon() * magnitude;
  }
};

void finish(Sum& s, const FloatEpilogue& e, int64_t channel, size_t at) {
  if (e.bias) s.add(e.bias[channel], 1);
  if (e.residual) s.add(e.residual[at], 1);
  s.value = std::clamp(s.value, double{e.lo}, double{e.hi});
}

struct Case {
  FloatConvArgs a;
  std::vector<float> in, out, weights, packed, bias, residual;
};
void fill_random(std::mt19937& rng, Case& c, bool depthwise, bool transposed) {
  FloatConvArgs& a = c.a;
  ConvGeometry& g = a.geometry;
  g.groups = depthwise ? pick(rng, 1, 40) : pick(rng, 0, 2) ? 1 : pick(rng, 2, 4);
  g.in_channels = depthwise ? g.groups : g.groups * pick(rng, 1, 20);
  g.out_channels = depthwise ? g.groups : g.groups * pick(rng, 1, 40);
  g.kernel_h = pick(rng, 1, 4);
  g.kernel_w = pick(rng, 1, 4);
  g.stride_h = pick(rng, 1, 2);
  g.stride_w = pick(rng, 1, 2);
  g.dilation_h = pick(rng, 1, 2);
  g.dilation_w = pick(rng, 1, 2);
  g.pad_top = pick(rng, 0, g.kernel_h - 1);
  g.pad_left = pick(rng, 0, g.kernel_w - 1);
  a.n = pick(rng, 1, 2);
  a.in_h = pick(rng, 1, 6) + (g.kernel_h - 1) * g.dilation_h;
  a.in_w = pick(rng, 1, 15) + (g.kernel_w - 1) * g.dilation_w;
  if (transposed) {
    a.out_h = (a.in_h - 1) * g.stride_h + (g.kernel_h - 1) * g.dilation_h + 1 - g.pad_top;
    a.out_w = (a.in_w - 1) * g.stride_w + (g.kernel_w - 1) * g.dilation_w + 1 - g.pad_left;
  } else {
    a.out_h = (a.in_h + 2 * g.pad_top - (g.kernel_h - 1) * g.dilation_h - 1) / g.stride_h + 1;
    a.out_w = (a.in_w + 2 * g.pad_left - (g.kernel_w - 1) * g.dilation_w - 1) / g.stride_w + 1;
  }
  c.in = random_floats(rng, a.n * a.in_h * a.in_w * g.in_channels);
  c.out.resize(static_cast<size_t>(a.n * a.out_h * a.out_w * g.out_channels));
  c.weights = random_floats(rng, g.out_channels * g.in_channels / g.groups * g.kernel_h * g.kernel_w);
  c.bias = random_floats(rng, g.out_channels);
  c.residual = random_floats(rng, static_cast<int64_t>(c.out.size()));
  a.in = c.in.data();
  a.out = c.out.data();
  a.epilogue.bias = c.bias.data();
  if (pick(rng, 0, 1)) a.epilogue.residual = c.residual.data();
  if (pick(rng, 0, 1)) a.epilogue.lo = 0;
  if (depthwise) {
    c.packed.resize(c.weights.size());
    pack_float_depthwise_weights(g, c.weights, c.packed);
  } else if (transposed) {
    c.packed = c.weights;
  } else {
    c.packed.resize(static_cast<size_t>(float_conv_weight_floats(g)));
    pack_float_conv_weights(g, c.weights, c.packed);
  }
  a.weights = c.packed.data();
}

// The sum of output element (n, y, x, oc): by scattering for the transposed convolution, by gathering otherwise.
Sum want(const Case& c, bool transposed, int64_t n, int64_t y, int64_t x, int64_t oc) {
  const FloatConvArgs& a = c.a;
  const ConvGeometry& g = a.geometry;
  const int64_t icg = g.in_channels / g.groups, ocg = g.out_channels / g.groups, group = oc / ocg;
  Sum s;
  for (int64_t ic = 0; ic < icg; ++ic)
    for (int64_t ky = 0; ky < g.kernel_h; ++ky)
      for (int64_t kx = 0; kx < g.kernel_w; ++kx)
        for (int64_t iy = 0; iy < a.in_h; ++iy)
          for (int64_t ix = 0; ix < a.in_w; ++ix) {
            const bool hit = transposed ? iy * g.stride_h + ky * g.dilation_h - g.pad_top == y &&
                                              ix * g.stride_w + kx * g.dilation_w - g.pad_left == x
                                        : y * g.stride_h + ky * g.dilation_h - g.pad_top == iy &&
                                              x * g.stride_w + kx * g.dilation_w - g.pad_left == ix;
            if (!hit) continue;
            const int64_t tap = ky * g.kernel_w + kx, taps = g.kernel_h * g.kernel_w;
            const int64_t w =
                transposed ? ((group * icg + ic) * ocg + oc % ocg) * taps + tap : (oc * icg + ic) * taps + tap;
            s.add(c.in[static_cast<size_t>(((n * a.in_h + iy) * a.in_w + ix) * g.in_channels + group * icg + ic)],
                  c.weights[static_cast<size_t>(w)]);
          }
  return s;
}

enum class Kind { kConv, kDepthwise, kTransposed };

void check(Kind kind, int cases, unsigned seed) {
  std::mt19937 rng(seed);
  for (int i = 0; i < cases; ++i) {
    Case c;
    fill_random(rng, c, kind == Kind::kDepthwise, kind == Kind::kTransposed);
    const FloatConvArgs& a = c.a;
    const int64_t rows = a.n * a.out_h, blocks = float_conv_blocks(a.geometry), channels = a.geometry.out_channels;
    std::vector<Sum> wanted(c.out.size());
    for (size_t at = 0; at < c.out.size(); ++at) {
      const auto p = static_cast<int64_t>(at) / channels;
      wanted[at] = want(c, kind == Kind::kTransposed, p / a.out_w / a.out_h, p / a.out_w % a.out_h, p % a.out_w,
                        static_cast<int64_t>(at) % channels);
      finish(wanted[at], a.epilogue, static_cast<int64_t>(at) % channels, at);
    }
    for (Isa isa : supported_isas()) {
      std::fill(c.out.begin(), c.out.end(), 1e30f);
      const KernelTable& k = kernels(isa);
      const int64_t cut = pick(rng, 0, rows), block_cut = pick(rng, 0, blocks);
      for (const Range r : {Range{0, cut}, Range{cut, rows}}) {
        if (kind == Kind::kDepthwise) k.float_depthwise(a, r);
        if (kind == Kind::kTransposed) k.float_conv_transpose(a, r);
        if (kind == Kind::kConv) {
          k.float_conv(a, r, Range{0, block_cut});
          k.float_conv(a, r, Range{block_cut, blocks});
        }
      }
      for (size_t at = 0; at < c.out.size(); ++at)
        ASSERT_NEAR(c.out[at], wanted[at].value, wanted[at].tolerance())
            << isa_name(isa) << " case " << i << " element " << at;
    }
  }
}

TEST(FloatConv, Convolution) {
  check(Kind::kConv, 40, 1);
}
TEST(FloatConv, Depthwise) {
  check(Kind::kDepthwise, 60, 2);
}
TEST(FloatConv, Transposed) {
  check(Kind::kTransposed, 15, 3);
}

TEST(FloatConv, GemmWithManyInputsAndMatMul) {
  std::mt19937 rng(4);
  for (int i = 0; i < 30; ++i) {
    const int64_t m = pick(rng, 1, 13), n = pick(rng, 1, 90), k = i == 0 ? 2500 : pick(rng, 1, 70),
                  batches = pick(rng, 1, 3);
    const std::vector<float> a = random_floats(rng, batches * m * k), w = random_floats(rng, n * k);
    const std::vector<float> bias = random_floats(rng, n);
    ConvGeometry g{.in_channels = k, .out_channels = n};
    std::vector<float> packed(static_cast<size_t>(float_conv_weight_floats(g)));
    pack_float_conv_weights(g, w, packed);
    std::vector<float> transposed(w.size());
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l) transposed[static_cast<size_t>(l * n + j)] = w[static_cast<size_t>(j * k + l)];
    std::vector<float> c(static_cast<size_t>(batches * m * n)), product(c.size());
    for (Isa isa : supported_isas()) {
      const FloatGemmArgs gemm{.a = a.data(),
                               .weights = packed.data(),
                               .c = c.data(),
                               .m = batches * m,
                               .n = n,
                               .k = k,
                               .epilogue = {.bias = bias.data()}};
      const int64_t cut = pick(rng, 0, batches * m);
      kernels(isa).float_gemm(gemm, Range{0, cut}, Range{0, float_conv_blocks(g)});
      kernels(isa).float_gemm(gemm, Range{cut, batches * m}, Range{0, float_conv_blocks(g)});
      kernels(isa).float_matmul(FloatMatMulArgs{.a = a.data(),
                                                .b = transposed.data(),
                                                .c = product.data(),
                                                .batches = batches,
                                                .m = m,
                                                .n = n,
                                                .k = k,
                                                .a_batch_stride = m * k},
                                Range{0, batches * m});
      for (int64_t r = 0; r < batches * m; ++r)
        for (int64_t j = 0; j < n; ++j) {
          Sum s;
          for (int64_t l = 0; l < k; ++l) s.add(a[static_cast<size_t>(r * k + l)], w[static_cast<size_t>(j * k + l)]);
          ASSERT_NEAR(product[static_cast<size_t>(r * n + j)], s.value, s.tolerance()) << isa_name(isa);
          s.add(bias[static_cast<size_t>(j)], 1);
          ASSERT_NEAR(c[static_cast<size_t>(r * n + j)], s.value, s.tolerance()) << isa_name(isa);
        }
    }
  }
}

}  // namespace
}  // namespace octet::kernels
