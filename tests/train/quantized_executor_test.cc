// Networks with quantizers in the executor: values on the grid, gradients, scales, calibration.
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "passes/fold_batch_norm.h"
#include "passes/place_fake_quant.h"
#include "train/calibration_run.h"
#include "train/residual_network.h"

namespace octet::train {
namespace {

using ir::Graph;
using ir::OpKind;
using ir::Value;
using testing::floats;
using testing::gradient_leaves_of;
using testing::gradient_step;
using testing::kLabels;
using testing::loss_of;
using testing::random_tensor;
using testing::residual_network;

// Folded, quantizers placed, scales from the float network.
Graph quantized_network() {
  Graph g = residual_network();
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
  Graph g = residual_network();
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
  EXPECT_THROW(run_calibration(residual_network(), [](at::Tensor*) { return false; }), UserError);
}

}  // namespace
}  // namespace octet::train
