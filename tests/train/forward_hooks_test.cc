// Taps and overrides: what they see and change, in training and evaluation, with fused chains and without.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/infer.h"
#include "train/executor.h"
#include "train/op_cases.h"

namespace octet::train {
namespace {

using ir::OpKind;
using ir::Value;
using testing::floats;
using testing::random_constant;
using testing::random_tensor;

// conv1 - bn - relu - conv2 - logits: in training bn and relu are one chain, so that `bn` exists only where it is seen.
ir::Graph network() {
  ir::Graph g;
  const auto weight = [&](const std::string& name, const ir::Shape& shape, double low = -0.5, double high = 0.5) {
    return g.add_constant(name, random_constant(shape, name.size(), low, high), true);
  };
  Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 2, 6, 6}});
  Value* y = g.add(OpKind::kConv, "conv1", {x, weight("conv1.weight", {4, 2, 3, 3})});
  y = g.add(OpKind::kBatchNormalization, "bn",
            {y, weight("gamma", {4}, 0.5, 1.5), weight("beta", {4}), g.add_constant("mean", random_constant({4}, 1)),
             g.add_constant("variance", random_constant({4}, 2, 0.5, 1.5))});
  y = g.add(OpKind::kRelu, "relu", {y});
  y = g.add(OpKind::kConv, "conv2", {y, weight("conv2.weight", {3, 4, 4, 4})});
  g.add_output(g.add(OpKind::kFlatten, "logits", {y}));
  ir::infer_shapes(g);
  return g;
}

// The same with every value that the tests look at as an output.
ir::Graph network_with_output(const std::string& name) {
  ir::Graph g = network();
  g.add_output(g.find_value(name));
  ir::infer_shapes(g);
  return g;
}

at::Tensor images() {
  return random_tensor({4, 2, 6, 6}, 3);
}

std::vector<std::vector<float>> gradients(const Executor& e) {
  std::vector<std::vector<float>> out;
  for (const auto& [name, parameter] : e.named_parameters())
    out.push_back(parameter.grad().defined() ? floats(parameter.grad()) : std::vector<float>());
  return out;
}

at::Tensor named(const Executor& e, const std::string& name) {
  for (const auto& tensors : {e.named_parameters(), e.named_buffers()})
    for (const auto& [each, tensor] : tensors)
      if (each == name) return tensor.detach();
  return {};
}

class Hooks : public ::testing::TestWithParam<Precision> {
 protected:
  ExecutorOptions options() const { return {.precision = GetParam()}; }
};

// A loss of a tapped value descends as one of the same value as an output of the graph.
TEST_P(Hooks, TapsInTrainingCarryTheGradient) {
  for (const char* name : {"bn", "relu", "conv1"}) {
    SCOPED_TRACE(name);
    Executor tapped(network(), options()), exposed(network_with_output(name), options());
    at::Tensor feature;
    tapped.set_tap(
        [&](const Value& v, const at::Tensor& t) {
          EXPECT_EQ(v.name, name);
          feature = t;
        },
        {name});
    const at::Tensor logits = tapped.forward({images()}, Mode::kTrain)[0];
    const std::vector<at::Tensor> outputs = exposed.forward({images()}, Mode::kTrain);
    EXPECT_EQ(floats(logits), floats(outputs[0]));
    EXPECT_EQ(floats(feature), floats(outputs[1]));
    (logits.sum() + feature.square().sum()).backward();
    (outputs[0].sum() + outputs[1].square().sum()).backward();
    EXPECT_EQ(gradients(tapped), gradients(exposed));
  }
}

TEST_P(Hooks, TapsChangeNothing) {
  Executor plain(network(), options()), tapped(network(), options());
  int seen = 0;
  tapped.set_tap([&](const Value&, const at::Tensor&) { ++seen; }, {"relu"});
  for (Executor* e : {&plain, &tapped}) e->forward({images()}, Mode::kTrain)[0].sum().backward();
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(gradients(plain), gradients(tapped));
  tapped.set_tap(nullptr);
  EXPECT_EQ(floats(tapped.forward({images()}, Mode::kTrain)[0]), floats(plain.forward({images()}, Mode::kTrain)[0]));
  EXPECT_EQ(seen, 1);
}

TEST_P(Hooks, OverridesReplaceAValueForWhatFollows) {
  for (const char* name : {"x", "bn", "relu"})
    for (const Mode mode : {Mode::kTrain, Mode::kEval}) {
      SCOPED_TRACE(::testing::Message() << name << (mode == Mode::kTrain ? " train" : " eval"));
      Executor e(network(), options());
      e.set_batch_norm_frozen(true);
      at::Tensor before, shown;
      e.set_tap([&](const Value&, const at::Tensor& t) { before = t.detach(); }, {name});
      e.forward({images()}, mode);
      at::Tensor computed;
      const at::Tensor wanted = at::relu(before * 0.5 + 1).contiguous();  // not in the executor's layout
      e.set_override(name, [&](const at::Tensor& t) {
        computed = t.detach();
        return wanted;
      });
      e.set_tap([&](const Value&, const at::Tensor& t) { shown = t.detach(); }, {name});
      const auto with_tap = floats(e.forward({images()}, mode)[0]);
      EXPECT_EQ(floats(computed), floats(before));
      EXPECT_TRUE(at::allclose(shown, wanted, GetParam() == Precision::kBFloat16 ? 1e-2 : 0, 0));
      e.set_tap(nullptr);
      const auto replaced = floats(e.forward({images()}, mode)[0]);
      // What follows, by hand.
      at::Tensor y = wanted;
      const auto constant = [&](const char* of) { return named(e, of); };
      if (std::string(name) == "x") y = at::conv2d(y, constant("conv1.weight"));
      if (std::string(name) == "x")
        y = std::get<0>(at::native_batch_norm(y, constant("gamma"), constant("beta"), constant("mean"),
                                              constant("variance"), false, 0, 1e-5));
      y = at::conv2d(at::relu(y), constant("conv2.weight")).flatten(1);
      const double tolerance = GetParam() == Precision::kBFloat16 ? 0.05 : 1e-5;
      const at::Tensor found = at::tensor(replaced).reshape(y.sizes());
      EXPECT_LE((found - y).abs().max().item<double>(), tolerance * y.abs().max().item<double>());
      EXPECT_EQ(floats(wanted), floats(at::relu(before * 0.5 + 1))) << "the replacement was overwritten";
      if (GetParam() == Precision::kFloat32) {
        EXPECT_EQ(with_tap, replaced);
      }
      e.set_override(name, nullptr);
      EXPECT_NE(floats(e.forward({images()}, mode)[0]), replaced);
    }
}

// The gradient of the loss comes to the replacement, and by it to whatever that was made of.
TEST_P(Hooks, GradientsFlowThroughTheReplacement) {
  Executor plain(network(), options()), doubled(network(), options()), cut(network(), options());
  const at::Tensor other = random_tensor({4, 4, 4, 4}, 9, 0.1, 1).requires_grad_();
  doubled.set_override("relu", [](const at::Tensor& t) { return t * 2; });
  cut.set_override("relu", [&](const at::Tensor&) { return other; });
  for (Executor* e : {&plain, &doubled, &cut}) e->forward({images()}, Mode::kTrain)[0].sum().backward();
  const auto before = gradients(plain), twice = gradients(doubled), none = gradients(cut);
  const auto near_twice = [&](size_t parameter) {
    const at::Tensor a = at::tensor(before.at(parameter)) * 2, b = at::tensor(twice.at(parameter));
    const double scale = a.abs().max().item<double>();
    return scale > 0 && (a - b).abs().max().item<double>() < 1e-3 * scale;
  };
  // In graph order: conv1.weight, gamma, beta, conv2.weight.
  ASSERT_EQ(before.size(), 4u);
  for (size_t i = 1; i < 4; ++i) EXPECT_TRUE(near_twice(i)) << i;
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(none.at(i).empty()) << i << ": nothing was made of it";
  EXPECT_FALSE(none.at(3).empty());
  // Of the sum over all outputs: the sum of conv2's weights over its outputs, at every place that the kernel sees.
  const at::Tensor expected = named(cut, "conv2.weight").sum(0).expand({4, 4, 4, 4});
  EXPECT_LE((other.grad() - expected).abs().max().item<double>(), GetParam() == Precision::kBFloat16 ? 0.02 : 1e-5);
}

TEST_P(Hooks, AnIdentityChangesNothing) {
  Executor plain(network(), options()), same(network(), options());
  same.set_override("relu", [](const at::Tensor& t) { return t; });
  for (Executor* e : {&plain, &same}) e->forward({images()}, Mode::kTrain)[0].sum().backward();
  EXPECT_EQ(gradients(plain), gradients(same));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Hooks, ::testing::Values(Precision::kFloat32, Precision::kBFloat16),
                         [](const auto& info) { return std::string(precision_name(info.param)); });

// The later nodes of a detector's second half take as many proposals as a sampler leaves.
TEST(HooksOf, AReplacementMayHaveAnotherSize) {
  Executor e(network());
  e.set_override("relu", [](const at::Tensor& t) { return t.slice(0, 0, 3); });
  EXPECT_EQ(e.forward({images()}, Mode::kTrain)[0].size(0), 3);
}

TEST(HooksOf, AreOnValuesThatAreComputed) {
  Executor e(network());
  for (const char* name : {"no such value", "gamma"}) try {
      e.set_override(name, [](const at::Tensor& t) { return t; });
      FAIL() << name;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(name));
    }
}

}  // namespace
}  // namespace octet::train
