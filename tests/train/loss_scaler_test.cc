// Loss scaling in a step: it changes nothing but what would overflow.
#include "train/loss_scaler.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "train/small_training.h"
#include "train/step.h"

namespace octet::train {
namespace {

using testing::batches_of;
using testing::parameters_of;
using testing::quadrants;
using testing::small_network;
using testing::state_of;

// Cross-entropy times a factor, which may bring a scaled loss out of float32.
struct Steep : testing::QuadrantTask {
  explicit Steep(double factor) : QuadrantTask(nullptr), factor(factor) {}
  LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override {
    LossParts parts = QuadrantTask::operator()(outputs, batch);
    parts[0].second = parts[0].second * factor;
    return parts;
  }
  double factor;
};

struct Student {
  Student(LossScaler* scaler, double steepness, double lr)
      : executor(small_network(true)),
        loss(steepness),
        optimizer(options(lr), parameters_of(executor)),
        step(executor, optimizer, loss, {.scaler = scaler}) {}
  static OptimizerOptions options(double lr) {
    OptimizerOptions o;
    o.type = OptimizerType::kAdam;
    o.lr = lr;
    return o;
  }
  checkpoint::NamedTensors kept() const {
    checkpoint::NamedTensors out;
    optimizer.save(out);
    return out;
  }
  Executor executor;
  Steep loss;
  Optimizer optimizer;
  TrainStep step;
};

data::Batch batch() {
  return std::move(batches_of(*quadrants(16, 1), 16)[0]);
}

TEST(LossScaler, ChangesNoBitWhereNothingOverflows) {
  DynamicLossScaler scaler;
  Student scaled(&scaler, 1, 0.01), plain(nullptr, 1, 0.01);
  for (int i = 0; i < 3; ++i) {
    const StepLoss a = scaled.step(batch(), 1), b = plain.step(batch(), 1);
    EXPECT_EQ(a.total, b.total);
    EXPECT_TRUE(a.updated && b.updated);
  }
  const auto want = state_of(plain.executor);
  for (const auto& [name, tensor] : state_of(scaled.executor)) EXPECT_TRUE(at::equal(tensor, want.at(name))) << name;
  EXPECT_EQ(scaler.factor(), 65536);
}

// 1e34 times a loss near 1.4 is finite, 65536 times that is not, and neither are half and a quarter of it.
TEST(LossScaler, AnOverflowSkipsTheStepAndHalvesTheScale) {
  DynamicLossScaler scaler;
  Student student(&scaler, 1e34, 1e-3);
  const auto before = state_of(student.executor);
  const checkpoint::NamedTensors kept = student.kept();
  double expected = 65536;
  int skipped = 0;
  StepLoss loss;
  for (; skipped < 10; ++skipped) {
    loss = student.step(batch(), 1);
    if (loss.updated) break;
    expected /= 2;
    EXPECT_EQ(scaler.factor(), expected);
    EXPECT_TRUE(std::isfinite(loss.total)) << "the loss is reported as it is, not scaled";
    for (const auto& [name, tensor] : student.executor.named_parameters())
      EXPECT_TRUE(at::equal(tensor, before.at(name))) << name << " after " << skipped;
    const checkpoint::NamedTensors now = student.kept();
    for (const auto& [name, tensor] : kept) EXPECT_EQ(now.at(name).to_floats(), tensor.to_floats()) << name;
  }
  EXPECT_GE(skipped, 1);
  EXPECT_LT(skipped, 5);
  EXPECT_EQ(scaler.factor(), expected);
  const auto after = state_of(student.executor);
  EXPECT_FALSE(at::equal(after.at("fc.weight"), before.at("fc.weight"))) << "a step that fits is made";
  for (const auto& [name, tensor] : after) EXPECT_TRUE(at::isfinite(tensor).all().item<bool>()) << name;
}

TEST(LossScaler, GrowsAfterAnIntervalWithoutOverflow) {
  DynamicLossScaler scaler({.initial = 8, .growth = 4, .backoff = 0.25, .growth_interval = 3});
  std::vector<at::Tensor> good = {at::ones({2}), at::full({1}, -16.0f)};
  const auto gradients = [](float value) { return std::vector<at::Tensor>{at::ones({2}), at::full({1}, value)}; };
  const auto after = [&](float value) {
    std::vector<at::Tensor> g = gradients(value);
    EXPECT_EQ(scaler.unscale(g), std::isfinite(value));
    return scaler.factor();
  };
  EXPECT_TRUE(scaler.unscale(good));
  EXPECT_EQ(good[0][0].item<float>(), 1.0f / 8);
  EXPECT_EQ(good[1].item<float>(), -2.0f);
  EXPECT_EQ(after(1), 8);
  EXPECT_EQ(after(1), 32) << "three in a row";
  EXPECT_EQ(after(1), 32);
  EXPECT_EQ(after(1), 32);
  EXPECT_EQ(after(INFINITY), 8) << "an overflow";
  EXPECT_EQ(after(1), 8) << "the count starts anew";
  EXPECT_EQ(after(1), 8);
  EXPECT_EQ(after(1), 32);
  EXPECT_EQ(after(NAN), 8);
}

TEST(LossScaler, DoesNotGrowBeyondFloat32) {
  DynamicLossScaler scaler({.initial = 1e38, .growth = 10, .backoff = 0.5, .growth_interval = 1});
  std::vector<at::Tensor> gradients = {at::ones({1})};
  EXPECT_TRUE(scaler.unscale(gradients));
  EXPECT_FLOAT_EQ(static_cast<float>(scaler.factor()), 1e38f);
}

}  // namespace
}  // namespace octet::train
