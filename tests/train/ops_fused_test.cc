// A chain in one pass against the same operations one by one.
#include "train/ops_fused.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "train/op_cases.h"

namespace octet::train {
namespace {

using testing::random_tensor;

struct Leaves {
  at::Tensor x, residual, gamma, beta, offset;
  std::vector<at::Tensor> defined() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& t : {x, residual, gamma, beta, offset})
      if (t.defined()) all.push_back(t);
    return all;
  }
};

struct FusedVariant {
  bool affine, norm, batch_statistics, residual, clamp, quantize, codes;
  std::string text() const {
    return str("affine ", affine, " norm ", norm, " batch ", batch_statistics, " residual ", residual, " clamp ", clamp,
               " quantize ", quantize, " codes ", codes);
  }
};

Leaves make_leaves(const FusedVariant& v, const std::vector<int64_t>& shape) {
  const int64_t c = shape[1];
  Leaves l;
  l.x = random_tensor(shape, 1, -2, 3).set_requires_grad(true);
  if (v.residual) l.residual = random_tensor(shape, 2).set_requires_grad(true);
  if (v.norm) l.gamma = random_tensor({c}, 3, -1, 1.5).set_requires_grad(true);
  if (v.norm) l.beta = random_tensor({c}, 4).set_requires_grad(true);
  if (v.affine) l.offset = random_tensor({c}, 5).set_requires_grad(true);
  return l;
}

PointwiseOptions options_of(const FusedVariant& v, const Leaves& l, int64_t channels) {
  PointwiseOptions o;
  if (v.affine) o.scale_x = random_tensor({channels}, 6, 0.1, 2);
  o.offset = l.offset;
  o.gamma = l.gamma;
  o.beta = l.beta;
  o.running_mean = random_tensor({channels}, 7);
  o.running_variance = random_tensor({channels}, 8, 0.5, 2);
  o.batch_statistics = v.batch_statistics;
  o.residual = l.residual;
  o.residual_scale = 0.75f;
  o.clamp = v.clamp;
  o.lower = 0;
  o.upper = 1.25f;
  o.quantize = v.quantize;
  o.codes = v.codes;
  o.scale = 0.008f;
  o.low = -128;
  o.high = 127;
  return o;
}

// The definition, in float64.
at::Tensor reference(const FusedVariant& v, const Leaves& l, const PointwiseOptions& o) {
  const int64_t rank = l.x.dim();
  const auto channel = [&](const at::Tensor& t) { return along_axis(t.to(at::kDouble), 1, rank); };
  at::Tensor y = l.x.to(at::kDouble);
  if (v.affine) y = y * channel(o.scale_x) + channel(l.offset);
  if (v.norm)
    y = std::get<0>(at::native_batch_norm(y, l.gamma.to(at::kDouble), l.beta.to(at::kDouble),
                                          o.running_mean.to(at::kDouble), o.running_variance.to(at::kDouble),
                                          v.batch_statistics, 0.1, o.epsilon));
  if (v.residual) y = y + l.residual.to(at::kDouble) * 0.75;
  if (v.clamp) y = at::clamp(y, 0, 1.25);
  if (v.quantize) {  // straight through: the value is that of the codes, the gradient that of y / scale
    const double scale = static_cast<double>(o.scale);
    const at::Tensor ratio = y / scale;
    const at::Tensor clipped = at::clamp(ratio, -128.5, 127.5);
    y = clipped + (at::clamp(at::round(ratio), -128, 127) - clipped).detach();
    if (!v.codes) y = y * scale;
  }
  return y;
}

TEST(Pointwise, EqualsTheOperationsOneByOne) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{{3, 20, 5, 6}, {70, 16}, {4, 5, 9}})
    for (int bits = 0; bits < 128; ++bits) {
      const FusedVariant v{bool(bits & 1),  bool(bits & 2),  bool(bits & 4), bool(bits & 8),
                           bool(bits & 16), bool(bits & 32), bool(bits & 64)};
      if ((v.batch_statistics && !v.norm) || (v.codes && !v.quantize)) continue;
      SCOPED_TRACE(v.text());
      const Leaves l = make_leaves(v, shape);
      const PointwiseOptions o = options_of(v, l, shape[1]);
      const at::Tensor expected = reference(v, l, o), actual = pointwise(l.x, o);
      const at::Tensor difference = (actual.to(at::kDouble) - expected).abs();
      // A value on the border between two codes may fall on either side: compare all but a few.
      const double step = v.quantize ? (v.codes ? 1.0 : static_cast<double>(o.scale)) : 0;
      EXPECT_LE(difference.max().item<double>(), step * 1.0001 + 2e-5 * (1 + expected.abs().max().item<double>()));
      EXPECT_LE((difference > 1e-4).sum().item<int64_t>(), v.quantize ? 3 : 0);

      const at::Tensor weight = random_tensor(shape, 9);
      const auto want = torch::autograd::grad({expected}, l.defined(), {weight.to(at::kDouble)});
      const auto got = torch::autograd::grad({actual}, l.defined(), {weight});
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_LE((want[i] - got[i]).norm().item<double>(), 2e-4 * (1 + want[i].norm().item<double>())) << "leaf " << i;
    }
}

TEST(Pointwise, UpdatesRunningStatisticsAsLibTorchDoes) {
  for (const bool affine : {false, true}) {
    const FusedVariant v{affine, true, true, false, false, false, false};
    const Leaves l = make_leaves(v, {6, 8, 7, 7});
    const PointwiseOptions o = options_of(v, l, 8);
    at::Tensor mean = o.running_mean.clone(), variance = o.running_variance.clone();
    at::Tensor x = l.x.detach();
    if (affine) x = x * along_axis(o.scale_x, 1, 4) + along_axis(l.offset.detach(), 1, 4);
    at::native_batch_norm(x, l.gamma, l.beta, mean, variance, true, 0.1, o.epsilon);
    pointwise(l.x, o);
    EXPECT_LE((o.running_mean - mean).abs().max().item<double>(), 1e-6);
    EXPECT_LE((o.running_variance - variance).abs().max().item<double>(), 1e-6);
  }
}

// Sums around zero would lose all digits of the variance here.
TEST(Pointwise, ComputesTheVarianceOfDataFarFromZero) {
  const at::Tensor x = random_tensor({8, 4, 16, 16}, 1) + 1000;
  PointwiseOptions o;
  o.gamma = at::ones({4});
  o.beta = at::zeros({4});
  o.running_mean = at::zeros({4});
  o.running_variance = at::ones({4});
  o.batch_statistics = true;
  const at::Tensor y = pointwise(x, o).to(at::kDouble);
  EXPECT_NEAR(y.mean().item<double>(), 0, 1e-3);
  EXPECT_NEAR(y.pow(2).mean().item<double>(), 1, 1e-3);
}

TEST(Pointwise, InBfloat16RoundsOnlyTheResult) {
  for (int bits = 0; bits < 32; ++bits) {
    const FusedVariant v{bool(bits & 1), bool(bits & 2), bool(bits & 4), bool(bits & 8), bool(bits & 16), false, false};
    if (v.batch_statistics && !v.norm) continue;
    SCOPED_TRACE(v.text());
    Leaves l = make_leaves(v, {3, 20, 5, 6});
    for (at::Tensor* t : {&l.x, &l.residual})  // the values that both computations start from
      if (t->defined()) *t = t->detach().to(at::kBFloat16).set_requires_grad(true);
    const PointwiseOptions o = options_of(v, l, 20);
    const at::Tensor actual = pointwise(l.x, o);
    EXPECT_EQ(actual.scalar_type(), at::kBFloat16);
    const at::Tensor expected = reference(v, l, o), difference = (actual.to(at::kDouble) - expected).abs();
    EXPECT_LE((difference - 0.00391 * expected.abs()).max().item<double>(), 2e-5);  // half a unit: 2^-8
  }
}

}  // namespace
}  // namespace octet::train
