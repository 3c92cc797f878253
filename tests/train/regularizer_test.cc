#include "train/regularizer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "train/small_training.h"
#include "train/step.h"

namespace octet::train {
namespace {

using testing::small_network;

const std::vector<std::string> kRegularized = {"conv.weight", "conv.bias", "fc.weight", "fc.bias"};

// From the numbers in the graph: kernels and biases of both layers, and not the batch norm between them.
TEST(Regularizer, IsTheSumOverKernelsAndBiases) {
  for (const bool quantized : {false, true}) {
    const ir::Graph graph = small_network(quantized);
    double l1 = 0, l2 = 0;
    for (const std::string& name : kRegularized)
      for (const float w : graph.find_value(name)->constant->to_floats()) l1 += std::fabs(w), l2 += double{w} * w;
    const Executor executor(graph);
    EXPECT_NEAR(Regularizer({RegularizerType::kL1, 0.3}, executor)().item<double>(), 0.3 * l1, 1e-5 * l1);
    EXPECT_NEAR(Regularizer({RegularizerType::kL2, 0.3}, executor)().item<double>(), 0.3 * l2, 1e-5 * l2);
  }
  EXPECT_FALSE(Regularizer({}, Executor(small_network(false))).enabled());
}

double largest(const std::vector<float>& values, size_t from, size_t to) {
  double most = 0;
  for (size_t i = from; i < to; ++i) most = std::max(most, std::fabs(double{values[i]}));
  return most;
}

// Of each output channel of the weights; biases have none.
TEST(Regularizer, RangeIsTheSumOfTheLargestWeightsOfChannels) {
  for (const bool quantized : {false, true}) {
    const ir::Graph graph = small_network(quantized);
    double sum = 0;
    for (const std::string name : {"conv.weight", "fc.weight"}) {
      const ir::Tensor& weights = *graph.find_value(name)->constant;
      const std::vector<float> values = weights.to_floats();
      const size_t channels = static_cast<size_t>(weights.shape()[0]), each = values.size() / channels;
      for (size_t c = 0; c < channels; ++c) sum += largest(values, c * each, (c + 1) * each);
    }
    EXPECT_NEAR(Regularizer({RegularizerType::kRange, 0.3}, Executor(graph))().item<double>(), 0.3 * sum, 1e-5 * sum);
  }
}

// From the scales in the graph, number by number, and its gradient: twice the distance where nothing is clipped.
TEST(Regularizer, DampeningIsTheSquaredDistanceOfWeightsFromTheirCodes) {
  const ir::Graph graph = small_network(true);
  const Executor executor(graph);
  const Regularizer dampening({RegularizerType::kDampening, 0.5}, executor);
  double sum = 0;
  int quantized = 0;
  std::map<std::string, std::vector<double>> distances;
  for (const auto& node : graph.nodes()) {
    if (node->kind != ir::OpKind::kFakeQuantize || !node->input(0)->is_constant()) continue;
    ++quantized;
    const std::vector<float> values = node->input(0)->constant->to_floats(),
                             scales = node->input(1)->constant->to_floats();
    const size_t each = values.size() / scales.size();
    for (size_t i = 0; i < values.size(); ++i) {
      const double scale = scales[i / each], low = scale * static_cast<double>(node->get_int("qmin")),
                   high = scale * static_cast<double>(node->get_int("qmax"));
      const double code = std::clamp(std::nearbyint(values[i] / scale) * scale, low, high);
      const double inside = std::clamp(double{values[i]}, low, high);
      sum += (inside - code) * (inside - code);
      distances[node->input(0)->name].push_back(values[i] < low || values[i] > high ? 0 : inside - code);
    }
  }
  ASSERT_EQ(quantized, 1);
  ASSERT_GT(sum, 0);
  const at::Tensor penalty = dampening();
  EXPECT_NEAR(penalty.item<double>(), 0.5 * sum, 1e-4 * sum);
  for (const auto& [name, tensor] : executor.named_parameters()) {
    if (!distances.count(name)) continue;
    const at::Tensor gradient = torch::autograd::grad({penalty}, {tensor}, {}, true)[0].contiguous();
    for (size_t i = 0; i < distances[name].size(); ++i)
      ASSERT_NEAR(gradient.const_data_ptr<float>()[i], distances[name][i], 1e-5) << name << ' ' << i;
  }
  EXPECT_EQ(Regularizer({RegularizerType::kDampening, 0.5}, Executor(small_network(false)))().item<double>(), 0);
}

struct NoWatcher : Loss {
  LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch&) override {
    return {{"nothing", outputs.at(0).sum() * 0}};
  }
};

// One step of plain SGD with nothing else to descend: w - lr * weight * sign(w), and w - lr * weight * 2 w.
TEST(Regularizer, IsDescendedAndShown) {
  for (const RegularizerType type : {RegularizerType::kL1, RegularizerType::kL2}) {
    const ir::Graph graph = small_network(false);
    Executor executor(graph);
    OptimizerOptions sgd;
    sgd.lr = 0.5;
    sgd.momentum = sgd.weight_decay = 0;
    Optimizer optimizer(sgd, testing::parameters_of(executor));
    NoWatcher nothing;
    const Regularizer regularizer({type, 0.01}, executor);
    const double penalty = regularizer().item<double>();
    TrainStep step(executor, optimizer, nothing, {.regularizer = &regularizer});
    const StepLoss loss = step(testing::batches_of(*testing::quadrants(16, 1), 16)[0], 1);
    ASSERT_EQ(loss.parts.size(), 2u);
    EXPECT_EQ(loss.parts[1].first, "regularization");
    EXPECT_NEAR(loss.parts[1].second, penalty, 1e-6 * penalty);
    EXPECT_EQ(loss.total, loss.parts[1].second);
    const auto after = testing::state_of(executor);
    for (const std::string& name : kRegularized) {
      const std::vector<float> before = graph.find_value(name)->constant->to_floats();
      const at::Tensor moved = after.at(name).contiguous();
      for (size_t i = 0; i < before.size(); ++i) {
        const double w = before[i];
        const double gradient = type == RegularizerType::kL1 ? (w > 0) - (w < 0) : 2 * w;
        ASSERT_NEAR(moved.const_data_ptr<float>()[i], w - 0.5 * 0.01 * gradient, 1e-6) << name << ' ' << i;
      }
    }
    EXPECT_TRUE(at::equal(after.at("bn.weight"), at::ones({8})));
  }
}

}  // namespace
}  // namespace octet::train
