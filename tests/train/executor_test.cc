#include "train/executor.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>

#include "base/error.h"
#include "ir/infer.h"
#include "models/zoo.h"
#include "train/op_cases.h"
#include "train/residual_network.h"
#include "train/torch_runtime.h"

namespace octet::train {
namespace {

using ir::Graph;
using ir::OpKind;
using ir::Value;
using testing::floats;
using testing::gradient_leaves_of;
using testing::gradient_step;
using ::testing::HasSubstr;
using testing::kLabels;
using testing::loss_of;
using testing::random_tensor;
using testing::residual_network;

TEST(Executor, NamesParametersAndBuffersInGraphOrder) {
  Executor e(residual_network());
  std::vector<std::string> parameters, buffers;
  for (const auto& [name, tensor] : e.named_parameters()) {
    parameters.push_back(name);
    EXPECT_TRUE(tensor.is_leaf() && tensor.requires_grad());
  }
  for (const auto& [name, tensor] : e.named_buffers()) buffers.push_back(name);
  EXPECT_THAT(parameters, ::testing::ElementsAre("conv1.weight", "conv1.gamma", "conv1.beta", "conv2.weight",
                                                 "conv2.gamma", "conv2.beta", "shortcut.weight", "shortcut.gamma",
                                                 "shortcut.beta", "fc.weight", "fc.bias"));
  EXPECT_THAT(buffers, ::testing::ElementsAre("conv1.mean", "conv1.variance", "conv2.mean", "conv2.variance",
                                              "shortcut.mean", "shortcut.variance"));
}

// Chains in one pass, NHWC, against one node at a time in float64: losses, gradients and running statistics.
TEST(Executor, FusedTrainingEqualsFloat64) {
  const Graph g = residual_network();
  const at::Tensor x = random_tensor({8, 3, 8, 8}, 1);
  Executor fused(g), exact(g, {.precision = Precision::kFloat64});
  const at::Tensor a = loss_of(fused, x, kLabels), b = loss_of(exact, x, kLabels);
  EXPECT_NEAR(a.item<double>(), b.item<double>(), 1e-5);
  const auto ga = torch::autograd::grad({a}, gradient_leaves_of(fused)),
             gb = torch::autograd::grad({b}, gradient_leaves_of(exact));
  for (size_t i = 0; i < ga.size(); ++i)
    EXPECT_LE((ga[i] - gb[i]).norm().item<double>(), 1e-5 + 1e-4 * gb[i].norm().item<double>()) << i;
  const auto ba = fused.named_buffers(), bb = exact.named_buffers();
  for (size_t i = 0; i < ba.size(); ++i)
    EXPECT_LE((ba[i].second - bb[i].second).abs().max().item<double>(), 1e-5) << ba[i].first;
}

TEST(Executor, Bfloat16TrainingStaysNearFloat32) {
  const Graph g = residual_network();
  const at::Tensor x = random_tensor({8, 3, 8, 8}, 1);
  Executor low(g, {.precision = Precision::kBFloat16}), full(g);
  const at::Tensor a = loss_of(low, x, kLabels), b = loss_of(full, x, kLabels);
  EXPECT_EQ(a.scalar_type(), at::kFloat);
  EXPECT_NEAR(a.item<double>(), b.item<double>(), 0.02 * b.item<double>());
  const auto ga = torch::autograd::grad({a}, gradient_leaves_of(low)),
             gb = torch::autograd::grad({b}, gradient_leaves_of(full));
  for (size_t i = 0; i < ga.size(); ++i) {
    EXPECT_EQ(ga[i].scalar_type(), at::kFloat);
    EXPECT_LE((ga[i] - gb[i]).norm().item<double>(), 0.1 * gb[i].norm().item<double>()) << i;
  }
}

TEST(Executor, BatchNormFollowsOnnxMomentumAndCanBeFrozen) {
  const Graph g = residual_network();
  const at::Tensor x = random_tensor({8, 3, 8, 8}, 1) + 2;
  Executor e(g);
  const std::vector<float> before = floats(e.named_buffers()[0].second);
  e.set_batch_norm_frozen(true);
  e.forward({x}, Mode::kTrain);
  e.forward({x}, Mode::kEval);
  EXPECT_EQ(floats(e.named_buffers()[0].second), before);
  e.set_batch_norm_frozen(false);
  at::Tensor conv;
  e.set_tap([&](const Value&, const at::Tensor& t) { conv = t; }, {"conv1"});
  e.forward({x}, Mode::kEval);
  e.set_tap(nullptr);
  e.forward({x}, Mode::kTrain);
  const std::vector<float> after = floats(e.named_buffers()[0].second), mean = floats(conv.mean({0, 2, 3}));
  for (size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(after[i], 0.9 * before[i] + 0.1 * mean[i], 1e-5);
  // The unbiased variance.
  const std::vector<float> variance = floats(e.named_buffers()[1].second), batch = floats(conv.var({0, 2, 3}, true));
  const std::vector<float> old = g.find_value("conv1.variance")->constant->to_floats();
  for (size_t i = 0; i < variance.size(); ++i) EXPECT_NEAR(variance[i], 0.9 * old[i] + 0.1 * batch[i], 1e-5);
}

// Frozen parameters: the batch norms behind them are the same function of every batch, fused or not; the others learn.
TEST(Executor, BatchNormsWithoutTrainableScaleKeepTheirStatistics) {
  Graph g = residual_network();
  const at::Tensor x = random_tensor({8, 3, 8, 8}, 1) + 2;
  const auto statistics = [&] {
    Executor e(g);
    const std::vector<float> before = floats(e.named_buffers()[0].second);
    const std::vector<float> evaluated = floats(e.forward({x}, Mode::kEval)[0]);
    const at::Tensor trained = e.forward({x}, Mode::kTrain)[0];
    const auto gradients = torch::autograd::grad({trained.square().sum()}, gradient_leaves_of(e));
    for (const at::Tensor& gradient : gradients) EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());
    return std::pair(floats(e.named_buffers()[0].second) == before, floats(trained) == evaluated);
  };
  EXPECT_EQ(statistics(), std::pair(false, false));
  int norms = 0;
  for (const auto& node : g.nodes())
    if (node->kind == ir::OpKind::kBatchNormalization) {
      node->inputs[1]->trainable = node->inputs[2]->trainable = false;
      ++norms;
    }
  EXPECT_GT(norms, 0);
  EXPECT_TRUE(statistics().first);
}

TEST(Executor, GivesTheSameBytesEveryTime) {
  const Graph g = residual_network(0.3);
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    std::vector<std::vector<float>> results[2];
    for (auto& result : results) {
      Executor e(g, {.precision = precision, .seed = 4});
      for (int step = 0; step < 3; ++step) gradient_step(e, random_tensor({8, 3, 8, 8}, step), kLabels, 0.1);
      for (const at::Tensor& p : gradient_leaves_of(e)) result.push_back(floats(p));
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST(Executor, DrawsDropoutFromSeedAndStep) {
  const Graph g = residual_network(0.5);
  const at::Tensor x = random_tensor({8, 3, 8, 8}, 1);
  Executor a(g, {.seed = 1}), b(g, {.seed = 2}), c(g, {.seed = 1});
  for (Executor* e : {&a, &b, &c}) e->set_batch_norm_frozen(true);
  const auto first = floats(a.forward({x}, Mode::kTrain)[0]), second = floats(a.forward({x}, Mode::kTrain)[0]);
  EXPECT_EQ(a.step(), 2);
  EXPECT_NE(first, second);
  EXPECT_NE(first, floats(b.forward({x}, Mode::kTrain)[0]));
  c.set_step(1);
  EXPECT_EQ(second, floats(c.forward({x}, Mode::kTrain)[0]));
  EXPECT_EQ(floats(a.forward({x}, Mode::kEval)[0]), floats(b.forward({x}, Mode::kEval)[0]));
}

TEST(Executor, WritesBackAndLoadsWhatItTrained) {
  Graph g = residual_network();
  Executor e(g);
  const at::Tensor x = random_tensor({8, 3, 8, 8}, 1);
  gradient_step(e, x, kLabels, 0.1);
  const auto trained = floats(e.forward({x}, Mode::kEval)[0]);
  Graph copy = g.clone();
  e.write_back(copy);
  EXPECT_NE(copy.find_value("conv2.weight")->constant->to_floats(),
            g.find_value("conv2.weight")->constant->to_floats());
  EXPECT_EQ(trained, floats(Executor(copy).forward({x}, Mode::kEval)[0]));
  Executor fresh(g);
  fresh.load_from(copy);
  EXPECT_EQ(trained, floats(fresh.forward({x}, Mode::kEval)[0]));
  Graph other;
  EXPECT_THROW(e.write_back(other), UserError);
}

// Two of x * Sigmoid(x), the Sigmoid first or second, and one whose Sigmoid is an output, too.
TEST(Executor, TrainsSwishAsOneOperation) {
  Graph g;
  Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{8, 3, 6, 6}});
  Value* w = g.add_constant("w", testing::random_constant({10, 3, 3, 3}, 3, -0.5, 0.5), true);
  Value* a = g.add(OpKind::kConv, "conv", {x, w});
  Value* b = g.add(OpKind::kMul, "swish1", {a, g.add(OpKind::kSigmoid, "gate1", {a})});
  Value* c = g.add(OpKind::kMul, "swish2", {g.add(OpKind::kSigmoid, "gate2", {b}), b});
  Value* gate = g.add(OpKind::kSigmoid, "gate3", {c});
  Value* d = g.add(OpKind::kMul, "swish3", {c, gate});
  g.add_output(g.add(OpKind::kFlatten, "logits", {g.add(OpKind::kGlobalAveragePool, "pool", {d})}));
  g.add_output(gate);
  ir::infer_shapes(g);
  const at::Tensor images = random_tensor({8, 3, 6, 6}, 1, -4, 4);
  Executor fused(g), exact(g, {.precision = Precision::kFloat64});
  const at::Tensor p = loss_of(fused, images, kLabels), q = loss_of(exact, images, kLabels);
  EXPECT_NEAR(p.item<double>(), q.item<double>(), 1e-5);
  const at::Tensor gp = torch::autograd::grad({p}, gradient_leaves_of(fused))[0],
                   gq = torch::autograd::grad({q}, gradient_leaves_of(exact))[0];
  EXPECT_GT(gq.norm().item<double>(), 1e-3);
  EXPECT_LE((gp - gq).norm().item<double>(), 1e-4 * gq.norm().item<double>());
  const at::Tensor seen = fused.forward({images}, Mode::kTrain)[1];
  EXPECT_LE((seen - exact.forward({images}, Mode::kTrain)[1]).abs().max().item<double>(), 1e-6);
  std::vector<std::string> shown;
  fused.set_tap([&](const Value& v, const at::Tensor&) { shown.push_back(v.name); });
  fused.forward({images}, Mode::kEval);
  EXPECT_THAT(shown, ::testing::IsSupersetOf({gate->name, a->name, b->name, c->name, d->name}));
}

TEST(Executor, TapsShowEveryValueInNchwOrder) {
  const Graph g = residual_network();
  const at::Tensor x = random_tensor({2, 3, 8, 8}, 1);
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    Executor e(g, {.precision = precision});
    const auto plain = floats(e.forward({x}, Mode::kEval)[0]);
    std::map<std::string, at::Tensor> seen;
    e.set_tap([&](const Value& v, const at::Tensor& t) {
      EXPECT_EQ(t.scalar_type(), at::kFloat);
      seen[v.name] = t;
    });
    const auto tapped = floats(e.forward({x}, Mode::kEval)[0]);
    EXPECT_EQ(seen.size(), g.nodes().size() + 1);
    EXPECT_EQ(floats(seen.at("logits")), tapped);
    EXPECT_EQ(floats(seen.at("x")), floats(x));
    // A later in-place operator must not have changed what was shown.
    EXPECT_EQ(floats(at::relu(seen.at("add"))), floats(seen.at("relu2")));
    if (precision == Precision::kFloat32) {
      EXPECT_EQ(tapped, plain);
    }
  }
  Executor e(g);
  EXPECT_THROW(e.set_tap([](const Value&, const at::Tensor&) {}, {"no such value"}), UserError);
}

// --- errors

template <typename F>
std::string message_of(F f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no UserError";
}

TEST(ExecutorErrors, NameWhatIsWrong) {
  const Graph g = residual_network();
  Executor e(g);
  EXPECT_THAT(message_of([&] {
                e.forward({at::zeros({2, 3, 9, 8})}, Mode::kEval);
              }),
              HasSubstr("input 'x' of graph 'octet' has shape [2, 3, 9, 8], expected [?, 3, 8, 8]"));
  EXPECT_THAT(message_of([&] { e.forward({}, Mode::kEval); }), HasSubstr("takes 1 inputs, not 0"));
  EXPECT_THAT(message_of([&] { Executor(g, {.device = "tpu"}); }), HasSubstr("device 'tpu' is not known"));
  if (!cuda_available()) {
    EXPECT_THAT(message_of([&] { Executor(g, {.device = "cuda"}); }), HasSubstr("device 'cuda' cannot be used"));
  }

  Graph cubic;
  Value* x = cubic.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, 1, 4, 4}});
  Value* scales = cubic.add_constant("scales", ir::Tensor::of<float>({4}, std::vector<float>{1, 1, 2, 2}));
  cubic.add_output(cubic.add(OpKind::kResize, "up", {x, nullptr, scales},
                             {{"coordinate_transformation_mode", std::string("tf_crop_and_resize")}}));
  ir::infer_shapes(cubic);
  EXPECT_THAT(message_of([&] { Executor{cubic}; }), HasSubstr("node 'up' (Resize)"));
}

TEST(ExecutorZoo, NetworksLearnInOneStep) {
  struct Case {
    const char* arch;
    Precision precision;
  };
  for (const auto& [arch, precision] : {Case{"resnet20", Precision::kFloat32}, Case{"resnet20", Precision::kBFloat16},
                                        Case{"mobilenet_v2", Precision::kFloat32}}) {
    SCOPED_TRACE(arch);
    models::ModelOptions options = models::default_options(arch);
    options.num_classes = 10;
    options.input = {1, 32, 32};
    Graph g = models::build_model(options);
    ir::infer_shapes(g);
    Executor e(g, {.precision = precision});
    const at::Tensor x = random_tensor({8, 1, 32, 32}, 1);
    const double before = loss_of(e, x, kLabels).item<double>();
    e.set_step(0);  // the dropout mask of the first loss
    gradient_step(e, x, kLabels, 0.05);
    e.set_step(0);
    EXPECT_LT(loss_of(e, x, kLabels).item<double>(), before);
  }
}

}  // namespace
}  // namespace octet::train
