// Gradients of every operator against finite differences, in float64.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "train/executor.h"
#include "train/op_cases.h"

namespace octet::train::testing {
namespace {

using Ints = std::vector<int64_t>;
constexpr std::pair<Precision, double> kTolerances[] = {
    {Precision::kFloat64, 0}, {Precision::kFloat32, 1e-5}, {Precision::kBFloat16, 2e-2}};

// <gradient, direction> of L = sum(weight * y) for each of `leaves`, and the same from central differences.
void check_gradients(Executor& executor, const at::Tensor& x, std::vector<at::Tensor> leaves, double tolerance) {
  const auto loss = [&](const at::Tensor& weight) {
    executor.set_step(5);  // the same dropout mask every time
    return (executor.forward({x}, Mode::kTrain)[0] * weight).sum();
  };
  executor.set_step(5);
  const at::Tensor weight = random_tensor(executor.forward({x}, Mode::kTrain)[0].sizes().vec(), 11).to(at::kDouble);
  const auto gradients = torch::autograd::grad({loss(weight)}, leaves, {}, std::nullopt, false, true);
  for (size_t i = 0; i < leaves.size(); ++i) {
    ASSERT_TRUE(gradients[i].defined()) << "leaf " << i;
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const at::Tensor direction = random_tensor(leaves[i].sizes().vec(), 100 + seed).to(at::kDouble);
      const double analytic = (gradients[i] * direction).sum().item<double>(), h = 1e-6;
      const at::Tensor kept = leaves[i].detach().clone();
      const auto at_offset = [&](double t) {
        leaves[i].detach().copy_(kept + direction * t);
        return loss(weight).item<double>();
      };
      const double numeric = (at_offset(h) - at_offset(-h)) / (2 * h);
      leaves[i].detach().copy_(kept);
      EXPECT_NEAR(analytic, numeric, tolerance * (1 + std::abs(numeric))) << "leaf " << i;
    }
  }
}

TEST(Gradients, OfEveryOperatorAgreeWithFiniteDifferences) {
  for (const OpCase& c : op_cases()) {
    if (!c.differentiable) continue;
    SCOPED_TRACE(c.name);
    Executor executor(case_graph(c), {.precision = Precision::kFloat64});
    const at::Tensor x = random_tensor(c.input, 21, c.low, c.high).to(at::kDouble).set_requires_grad(true);
    std::vector<at::Tensor> leaves = {x};
    for (const auto& [name, tensor] : executor.named_parameters()) leaves.push_back(tensor);
    check_gradients(executor, x, leaves, 1e-6);
  }
}

// The float32 gradients of the fused path against those of float64.
TEST(Gradients, OfEveryOperatorInFloat32AgreeWithFloat64) {
  for (const OpCase& c : op_cases()) {
    if (!c.differentiable) continue;
    SCOPED_TRACE(c.name);
    const ir::Graph g = case_graph(c);
    std::vector<std::vector<at::Tensor>> all;
    for (const Precision precision : {Precision::kFloat64, Precision::kFloat32}) {
      Executor executor(g, {.precision = precision});
      const at::Tensor x = random_tensor(c.input, 22, c.low, c.high).set_requires_grad(true);
      std::vector<at::Tensor> leaves = {x};
      for (const auto& [name, tensor] : executor.named_parameters()) leaves.push_back(tensor);
      const at::Tensor y = executor.forward({x}, Mode::kTrain)[0];
      const at::Tensor weight = random_tensor(y.sizes().vec(), 12).to(y.scalar_type());
      all.push_back(torch::autograd::grad({(y * weight).sum()}, leaves));
    }
    for (size_t i = 0; i < all[0].size(); ++i)
      EXPECT_LE((all[0][i] - all[1][i]).norm().item<double>(), 1e-5 * (1e-3 + all[0][i].norm().item<double>())) << i;
  }
}

// For these, oneDNN's kernels write past their workspace: into whatever lies behind it. Memory that is held meanwhile
// shows that nothing else was written.
TEST(Gradients, OfStridedPointwiseConvolutionsOnFewChannelsWriteWhatIsTheirsAlone) {
  for (const int64_t channels : {1, 3, 15}) {
    SCOPED_TRACE(channels);
    const OpCase c{"strided pointwise", ir::OpKind::kConv, {2, channels, 112, 112}, [&](ir::Graph& g, ir::Value* x) {
                     ir::Value* w = g.add_constant("w", random_constant({16, channels, 1, 1}, 1), true);
                     return g.add(ir::OpKind::kConv, "y", {x, w, g.add_constant("b", random_constant({16}, 2), true)},
                                  {{"kernel_shape", Ints{1, 1}}, {"strides", Ints{2, 2}}});
                   }};
    const ir::Graph g = case_graph(c);
    std::vector<std::vector<at::Tensor>> all;
    for (const auto& [precision, tolerance] : kTolerances) {
      Executor executor(g, {.precision = precision});
      const at::Tensor x = random_tensor(c.input, 22).set_requires_grad(true);
      std::vector<at::Tensor> leaves = {x};
      for (const auto& [name, tensor] : executor.named_parameters()) leaves.push_back(tensor);
      const at::Tensor y = executor.forward({x}, Mode::kTrain)[0];
      EXPECT_EQ(y.sizes(), at::IntArrayRef({2, 16, 56, 56}));
      std::vector<at::Tensor> held;
      for (int i = 0; i < 64; ++i) held.push_back(at::ones({1024 << i % 8}));
      for (size_t i = 0; i < held.size(); i += 3) held[i] = at::Tensor();
      const at::Tensor weight = random_tensor(y.sizes().vec(), 12).to(y.scalar_type());
      all.push_back(torch::autograd::grad({(y * weight).sum()}, leaves));
      for (const at::Tensor& t : held) EXPECT_TRUE(!t.defined() || t.eq(1).all().item<bool>());
      for (size_t i = 0; i < leaves.size(); ++i) {
        const at::Tensor difference = all[0][i] - all.back()[i].to(at::kDouble);
        EXPECT_LE(difference.norm().item<double>(), tolerance * all[0][i].norm().item<double>()) << i;
      }
    }
  }
}

}  // namespace
}  // namespace octet::train::testing
