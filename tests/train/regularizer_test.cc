#include "train/regularizer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

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
