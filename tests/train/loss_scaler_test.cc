// Loss scaling in a step: it changes nothing but what would overflow.
#include "train/loss_scaler.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
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
  Student(LossScaler* scaler, double steepness, double lr, double weight_decay = 1e-4)
      : executor(small_network(true)),
        loss(steepness),
        optimizer(options(lr, weight_decay), parameters_of(executor)),
        step(executor, optimizer, loss, {.scaler = scaler}) {}
  static OptimizerOptions options(double lr, double weight_decay) {
    OptimizerOptions o;
    o.type = OptimizerType::kAdam;
    o.lr = lr;
    o.weight_decay = weight_decay;
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
  DynamicLossScaler scaler({.increment = 0});
  Student scaled(&scaler, 1, 0.01), plain(nullptr, 1, 0.01);
  for (int i = 0; i < 3; ++i) {
    const StepLoss a = scaled.step(batch(), 1), b = plain.step(batch(), 1);
    EXPECT_EQ(a.total, b.total);
    EXPECT_TRUE(a.updated && b.updated);
  }
  const auto want = state_of(plain.executor);
  for (const auto& [name, tensor] : state_of(scaled.executor)) EXPECT_TRUE(at::equal(tensor, want.at(name))) << name;
  EXPECT_EQ(scaler.factor(), std::exp2(20));
}

// 1e34 times a loss near 1.4 is finite, 65536 times that is not, and neither are half and a quarter of it.
TEST(LossScaler, AnOverflowSkipsTheStepAndHalvesTheScale) {
  DynamicLossScaler scaler({.initial_exponent = 16, .increment = 0});
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

// TAO's choice: the step is made with zeros, so Adam counts it and momenta fade.
TEST(LossScaler, TaoMakesAnOverflowAStepOfZeros) {
  DynamicLossScaler scaler({.initial_exponent = 16, .tao_compatible = true});
  Student student(&scaler, 1e34, 1e-3, /*weight_decay=*/0);
  const auto before = state_of(student.executor);
  EXPECT_TRUE(student.step(batch(), 1).updated);
  EXPECT_EQ(scaler.factor(), std::exp2(15));
  EXPECT_EQ(student.kept().at("optimizer/fc.weight/step").to_floats().at(0), 1);
  for (const auto& [name, tensor] : student.executor.named_parameters())
    EXPECT_TRUE(at::equal(tensor, before.at(name))) << name << ": the momenta were zeros, too";
}

// x by hand: 3, + 0.4 a step, - 1 at an overflow; the factor is 2^floor(x).
TEST(LossScaler, TheExponentRisesAndFalls) {
  DynamicLossScaler scaler({.initial_exponent = 3, .increment = 0.4, .decrement = 1});
  std::vector<at::Tensor> first = {at::ones({2}), at::full({1}, -16.0f)};
  EXPECT_TRUE(scaler.unscale(first));  // 3.4
  EXPECT_EQ(first[0][0].item<float>(), 1.0f / 8);
  EXPECT_EQ(first[1].item<float>(), -2.0f);
  const auto after = [&](float value) {
    std::vector<at::Tensor> g = {at::ones({2}), at::full({1}, value)};
    EXPECT_EQ(scaler.unscale(g), std::isfinite(value));
    return scaler.factor();
  };
  EXPECT_EQ(after(1), 8);         // 3.8
  EXPECT_EQ(after(1), 16);        // 4.2
  EXPECT_EQ(after(INFINITY), 8);  // 3.2
  EXPECT_EQ(after(NAN), 4);       // 2.2
  EXPECT_EQ(after(1), 4);         // 2.6
  checkpoint::NamedTensors state;
  scaler.save(state);
  DynamicLossScaler other({.increment = 0.4});
  other.load(state);
  std::vector<at::Tensor> g = {at::ones({1})};
  EXPECT_TRUE(other.unscale(g));  // 3.0
  EXPECT_EQ(other.factor(), 8);
  EXPECT_THROW(other.load({}), UserError);
}

TEST(LossScaler, StaysInFloat32AndSaysWhereNothingHelps) {
  DynamicLossScaler scaler({.initial_exponent = 120, .increment = 50, .decrement = 60});
  std::vector<at::Tensor> good = {at::ones({1})};
  EXPECT_TRUE(scaler.unscale(good));
  EXPECT_EQ(scaler.factor(), std::exp2(126));
  for (int i = 0; i < 4; ++i) {
    std::vector<at::Tensor> bad = {at::full({1}, INFINITY)};
    EXPECT_FALSE(scaler.unscale(bad));
  }
  EXPECT_EQ(scaler.factor(), std::exp2(-100));
  std::vector<at::Tensor> bad = {at::full({1}, INFINITY)};
  EXPECT_THROW(scaler.unscale(bad), UserError);
}

}  // namespace
}  // namespace octet::train
