#include "train/executor.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>
#include <set>

#include "base/error.h"
#include "ir/infer.h"
#include "models/zoo.h"
#include "passes/fold_batch_norm.h"
#include "passes/place_fake_quant.h"
#include "train/calibration_run.h"
#include "train/op_cases.h"
#include "train/torch_runtime.h"

namespace octet::train {
namespace {

using ir::Graph;
using ir::OpKind;
using ir::Value;
using testing::floats;
using ::testing::HasSubstr;
using testing::random_constant;
using testing::random_tensor;

// Two convolutions with batch norm, a projected shortcut, a classifier with dropout.
Graph small_network(double dropout = 0) {
  Graph g;
  const auto weight = [&](const std::string& name, const ir::Shape& shape) {
    return g.add_constant(name, random_constant(shape, name.size() + shape.size(), -0.4, 0.4), true);
  };
  const auto conv_norm = [&](const std::string& name, Value* x, int64_t in, int64_t out, int64_t kernel) {
    Value* y = g.add(OpKind::kConv, name, {x, weight(name + ".weight", {out, in, kernel, kernel})},
                     {{"pads", std::vector<int64_t>(4, kernel / 2)}});
    return g.add(OpKind::kBatchNormalization, name + "_bn",
                 {y, g.add_constant(name + ".gamma", random_constant({out}, 3, 0.5, 1.5), true),
                  g.add_constant(name + ".beta", random_constant({out}, 4, -0.5, 0.5), true),
                  g.add_constant(name + ".mean", random_constant({out}, 5, -0.1, 0.1)),
                  g.add_constant(name + ".variance", random_constant({out}, 6, 0.5, 1.5))});
  };
  Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 3, 8, 8}});
  Value* a = g.add(OpKind::kRelu, "relu1", {conv_norm("conv1", x, 3, 16, 3)});
  Value* b = conv_norm("conv2", a, 16, 16, 3);
  Value* sum = g.add(OpKind::kAdd, "add", {b, conv_norm("shortcut", a, 16, 16, 1)});
  Value* y = g.add(OpKind::kRelu, "relu2", {sum});
  y = g.add(OpKind::kFlatten, "flatten", {g.add(OpKind::kGlobalAveragePool, "pool", {y})});
  if (dropout > 0)
    y = g.add(OpKind::kDropout, "dropout", {y, g.add_constant("", ir::Tensor::scalar(static_cast<float>(dropout)))});
  g.add_output(g.add(OpKind::kGemm, "logits", {y, weight("fc.weight", {10, 16}), weight("fc.bias", {10})},
                     {{"transB", int64_t{1}}}));
  ir::infer_shapes(g);
  return g;
}

// Folded, quantizers placed, scales from the float network.
Graph quantized_network() {
  Graph g = small_network();
  passes::fold_batch_norm(g);
  ir::infer_shapes(g);
  passes::place_fake_quant(g);
  ir::infer_shapes(g);
  int batches = 2;
  const auto ranges = run_calibration(g, [&](at::Tensor* batch) {
                        *batch = random_tensor({8, 3, 8, 8}, batches, -1, 1);
                        return batches-- > 0;
                      }).ranges;
  for (const auto& node : g.nodes()) {
    if (node->kind != OpKind::kFakeQuantize) continue;
    node->attributes["state"] = std::string(ir::kFrozen);
    Value* scale = node->input(1);
    if (node->input(0)->is_constant()) continue;
    scale->constant =
        ir::Tensor::of<float>(scale->constant->shape(), std::vector<float>{ranges.at(node->input(0)->name).amax / 127});
  }
  Executor executor(g);  // weights: their scales follow them from the first step on
  executor.forward({random_tensor({2, 3, 8, 8}, 1)}, Mode::kTrain);
  executor.write_back(g);
  return g;
}

at::Tensor loss_of(Executor& e, const at::Tensor& x, const at::Tensor& labels) {
  return at::cross_entropy_loss(e.forward({x}, Mode::kTrain)[0], labels);
}

std::vector<at::Tensor> gradient_leaves_of(const Executor& e) {
  std::vector<at::Tensor> out;
  for (const auto& [name, tensor] : e.named_parameters()) out.push_back(tensor);
  return out;
}

void gradient_step(Executor& e, const at::Tensor& x, const at::Tensor& labels, double rate) {
  const auto parameters = gradient_leaves_of(e);
  const auto gradients = torch::autograd::grad({loss_of(e, x, labels)}, parameters);
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].detach().sub_(gradients[i], rate);
}

const at::Tensor kLabels = at::tensor(std::vector<int64_t>{1, 3, 5, 7, 9, 0, 2, 4});

TEST(Executor, NamesParametersAndBuffersInGraphOrder) {
  Executor e(small_network());
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
  const Graph g = small_network();
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
  const Graph g = small_network();
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
  const Graph g = small_network();
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
  Graph g = small_network();
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
  const Graph g = small_network(0.3);
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
  const Graph g = small_network(0.5);
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
  Graph g = small_network();
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

TEST(Executor, TapsShowEveryValueInNchwOrder) {
  const Graph g = small_network();
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

// --- quantized networks

TEST(QuantizedExecutor, EvaluatesToTheDequantizedFloatGraph) {
  const Graph g = quantized_network();
  Executor e(g);
  const at::Tensor x = random_tensor({4, 3, 8, 8}, 3, -1, 1);
  std::map<std::string, at::Tensor> seen;
  e.set_tap([&](const Value& v, const at::Tensor& t) { seen[v.name] = t; });
  e.forward({x}, Mode::kEval);
  int checked = 0;
  for (const auto& node : g.nodes()) {
    if (node->kind != OpKind::kFakeQuantize || node->input(0)->is_constant()) continue;
    // Every activation behind a quantizer is a whole number of steps.
    const float scale = node->input(1)->constant->to_floats()[0];
    const at::Tensor steps = seen.at(node->output()->name) / scale;
    EXPECT_LE((steps - at::round(steps)).abs().max().item<double>(), 1e-4) << node->name;
    EXPECT_LE(steps.abs().max().item<double>(), 128.001);
    ++checked;
  }
  EXPECT_GE(checked, 3);
}

TEST(QuantizedExecutor, TrainsOnTheGridInBothPrecisions) {
  const Graph g = quantized_network();
  const at::Tensor x = random_tensor({8, 3, 8, 8}, 1, -1, 1);
  Executor full(g), low(g, {.precision = Precision::kBFloat16}), nodes(g, {.channels_last = false});
  const at::Tensor a = loss_of(full, x, kLabels), b = loss_of(low, x, kLabels), c = loss_of(nodes, x, kLabels);
  EXPECT_NEAR(a.item<double>(), c.item<double>(), 1e-3);
  EXPECT_NEAR(a.item<double>(), b.item<double>(), 0.02);
  const auto ga = torch::autograd::grad({a}, gradient_leaves_of(full)),
             gb = torch::autograd::grad({b}, gradient_leaves_of(low)),
             gc = torch::autograd::grad({c}, gradient_leaves_of(nodes));
  for (size_t i = 0; i < ga.size(); ++i) {
    // Sums of different order land on other codes now and then.
    EXPECT_LE((ga[i] - gc[i]).norm().item<double>(), 0.02 * gc[i].norm().item<double>() + 1e-6) << i;
    EXPECT_LE((ga[i] - gb[i]).norm().item<double>(), 0.15 * ga[i].norm().item<double>() + 1e-6) << i;
  }
}

TEST(QuantizedExecutor, ScalesFollowTheirAveragingConstants) {
  const Graph g = quantized_network();
  const at::Tensor x = random_tensor({8, 3, 8, 8}, 1, -1, 1);
  const Value *weight_scale = nullptr, *input_scale = nullptr, *weight = nullptr;
  for (const auto& node : g.nodes()) {
    if (node->kind != OpKind::kFakeQuantize) continue;
    if (node->input(0)->is_constant() && !weight) weight = node->input(0), weight_scale = node->input(1);
    if (node->input(0)->name == "x") input_scale = node->input(1);
  }
  ASSERT_TRUE(weight && input_scale);
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    Executor e(g, {.precision = precision});
    const auto tensor = [&](const std::string& name) {
      for (const auto& list : {e.named_parameters(), e.named_buffers()})
        for (const auto& [n, t] : list)
          if (n == name) return t;
      throw std::logic_error(name);
    };
    const auto frozen = floats(tensor(input_scale->name));
    gradient_step(e, x, kLabels, 0.5);
    EXPECT_EQ(floats(tensor(input_scale->name)), frozen);
    // Weights: 127 steps to the largest of each channel, also after the last step.
    const at::Tensor amax = tensor(weight->name).detach().abs().amax({1, 2, 3});
    EXPECT_LE((tensor(weight_scale->name) - amax / 127).abs().max().item<double>(), 1e-8);
    e.set_averaging_constants(0.5f, 0);
    e.forward({x * 3}, Mode::kTrain);
    EXPECT_NEAR(floats(tensor(input_scale->name))[0], 0.5 * frozen[0] + 0.5 * (x * 3).abs().max().item<double>() / 127,
                1e-4);
  }
  EXPECT_THROW(Executor(g).set_averaging_constants(2, 0), UserError);
}

TEST(Calibration, DoesNotDependOnTheBatchSize) {
  Graph g = small_network();
  passes::fold_batch_norm(g);
  ir::infer_shapes(g);
  passes::place_fake_quant(g);
  ir::infer_shapes(g);
  const at::Tensor images = random_tensor({24, 3, 8, 8}, 1);
  std::vector<CalibrationRun> runs;
  for (const int64_t size : {24, 5}) {
    int64_t done = 0;
    runs.push_back(run_calibration(g, [&](at::Tensor* batch) {
      if (done >= 24) return false;
      *batch = images.narrow(0, done, std::min<int64_t>(size, 24 - done));
      done += size;
      return true;
    }));
  }
  EXPECT_EQ(runs[0].images, 24);
  EXPECT_EQ(runs[1].images, 24);
  ASSERT_EQ(runs[0].ranges.size(), runs[1].ranges.size());
  EXPECT_EQ(runs[0].ranges.at("x").count, images.numel());
  EXPECT_FLOAT_EQ(runs[0].ranges.at("x").max, images.max().item<float>());
  for (const auto& [name, range] : runs[0].ranges) {
    EXPECT_NEAR(range.amax, runs[1].ranges.at(name).amax, 1e-3 * range.amax) << name;
    EXPECT_EQ(range.count, runs[1].ranges.at(name).count) << name;
  }
  EXPECT_THROW(run_calibration(g, [](at::Tensor*) { return false; }), UserError);
  EXPECT_THROW(run_calibration(small_network(), [](at::Tensor*) { return false; }), UserError);
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
  const Graph g = small_network();
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
