// Loss scaling in a step: it changes nothing but what would overflow.
#include "train/loss_scaler.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

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
  CostScaler scaler({.increment = 0});
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
  CostScaler scaler({.initial_exponent = 16, .increment = 0});
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
  CostScaler scaler({.initial_exponent = 16, .tao_compatible = true});
  Student student(&scaler, 1e34, 1e-3, /*weight_decay=*/0);
  const auto before = state_of(student.executor);
  EXPECT_TRUE(student.step(batch(), 1).updated);
  EXPECT_EQ(scaler.factor(), std::exp2(15));
  EXPECT_EQ(student.kept().at("optimizer/steps").to_floats().at(0), 1);
  for (const auto& [name, tensor] : student.executor.named_parameters())
    EXPECT_TRUE(at::equal(tensor, before.at(name))) << name << ": the momenta were zeros, too";
}

// x by hand: 3, + 0.4 a step, - 1 at an overflow; the factor is 2^floor(x).
TEST(LossScaler, TheExponentRisesAndFalls) {
  CostScaler scaler({.initial_exponent = 3, .increment = 0.4, .decrement = 1});
  EXPECT_EQ(scaler.factor(), 8);
  const auto after = [&](bool finite) {
    scaler.update(finite);
    return scaler.factor();
  };
  EXPECT_EQ(after(true), 8);   // 3.4
  EXPECT_EQ(after(true), 8);   // 3.8
  EXPECT_EQ(after(true), 16);  // 4.2
  EXPECT_EQ(after(false), 8);  // 3.2
  EXPECT_EQ(after(false), 4);  // 2.2
  EXPECT_EQ(after(true), 4);   // 2.6
  checkpoint::NamedTensors state;
  scaler.save(state);
  CostScaler other({.increment = 0.4});
  other.load(state);
  other.update(true);  // 3.0
  EXPECT_EQ(other.factor(), 8);
  EXPECT_THROW(other.load({}), UserError);
}

TEST(LossScaler, StaysInFloat32AndSaysWhereNothingHelps) {
  CostScaler scaler({.initial_exponent = 120, .increment = 50, .decrement = 60});
  scaler.update(true);
  EXPECT_EQ(scaler.factor(), std::exp2(126));
  for (int i = 0; i < 4; ++i) scaler.update(false);
  EXPECT_EQ(scaler.factor(), std::exp2(-100));
  EXPECT_THROW(scaler.update(false), UserError);
}

// The exponents of the factor after each step, with overflows at `overflows`.
std::vector<int> exponents(LossScaler& scaler, int steps, const std::set<int>& overflows) {
  std::vector<int> out;
  for (int i = 0; i < steps; ++i) {
    scaler.update(!overflows.contains(i));
    out.push_back(std::ilogb(scaler.factor()));
    EXPECT_EQ(scaler.factor(), std::exp2(out.back()));
  }
  return out;
}

const std::set<int> kOverflows = {2, 3, 9, 15, 16, 17};

// The tables are what the Python sources do, run by hand with a short interval: torch/amp/grad_scaler.py, update();
// apex/amp/scaler.py, update_scale(), at tag 25.05; apex/fp16_utils/loss_scaler.py, DynamicLossScaler.update_scale().
TEST(GradScaler, MovesAsTorchs) {
  LossScaleOptions options{.growth_interval = 3, .max_loss_scale = 0};
  GradScaler scaler(options);
  EXPECT_EQ(scaler.factor(), 65536);
  EXPECT_THAT(exponents(scaler, 24, kOverflows),
              ::testing::ElementsAre(16, 16, 15, 14, 14, 14, 15, 15, 15, 14, 14, 14, 15, 15, 15, 14, 13, 12, 12, 12, 13,
                                     13, 13, 14));
}

TEST(GradScaler, DropsGrowthBeyondFloat32AsTorchs) {
  GradScaler scaler({.init_scale = std::exp2(126), .growth_interval = 2, .max_loss_scale = 0});
  EXPECT_THAT(exponents(scaler, 12, {5}),
              ::testing::ElementsAre(126, 127, 127, 127, 127, 126, 126, 127, 127, 127, 127, 127));
}

TEST(GradScaler, MovesAsApexsWithCapAndFloor) {
  const LossScaleOptions apex;
  EXPECT_EQ(apex.init_scale, std::exp2(16));
  EXPECT_EQ(apex.max_loss_scale, std::exp2(24));
  EXPECT_EQ(apex.growth_interval, 2000);
  GradScaler first({.growth_interval = 3, .max_loss_scale = std::exp2(15)});
  GradScaler second({.growth_interval = 3, .min_loss_scale = std::exp2(14)});
  EXPECT_EQ(first.factor(), 32768);
  EXPECT_THAT(exponents(first, 24, kOverflows), ::testing::ElementsAre(15, 15, 14, 13, 13, 13, 14, 14, 14, 13, 13, 13,
                                                                       14, 14, 14, 13, 12, 11, 11, 11, 12, 12, 12, 13));
  EXPECT_THAT(exponents(second, 24, kOverflows),
              ::testing::ElementsAre(16, 16, 15, 14, 14, 14, 15, 15, 15, 14, 14, 14, 15, 15, 15, 14, 14, 14, 14, 14, 15,
                                     15, 15, 16));
}

TEST(GradScaler, MovesAsApexsOlderOne) {
  GradScaler scaler({.init_scale = 4, .growth_interval = 3, .min_loss_scale = 1, .max_loss_scale = 0});
  EXPECT_THAT(exponents(scaler, 24, kOverflows),
              ::testing::ElementsAre(2, 2, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 2));
}

// The operator with which torch.amp.GradScaler updates its factor.
TEST(GradScaler, HasTheBitsOfTorchsOperator) {
  const LossScaleOptions options{
      .init_scale = 1000, .growth_factor = 1.7, .backoff_factor = 0.3, .growth_interval = 4, .max_loss_scale = 0};
  GradScaler scaler(options);
  at::Tensor factor = at::full({1}, options.init_scale, at::kFloat), tracker = at::zeros({1}, at::kInt);
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const bool overflow = random() % 8 == 0;
    at::_amp_update_scale_(factor, tracker, at::full({1}, overflow ? 1.0 : 0.0, at::kFloat), options.growth_factor,
                           options.backoff_factor, options.growth_interval);
    scaler.update(!overflow);
    ASSERT_EQ(scaler.factor(), static_cast<double>(factor.item<float>())) << i;
  }
}

TEST(GradScaler, GoesOnFromItsState) {
  const LossScaleOptions options{.growth_interval = 5};
  GradScaler whole(options), first(options), second(options);
  for (int i = 0; i < 3; ++i) first.update(true), whole.update(true);
  checkpoint::NamedTensors state;
  first.save(state);
  second.load(state);
  for (int i = 0; i < 12; ++i) {
    second.update(i != 6), whole.update(i != 6);
    EXPECT_EQ(second.factor(), whole.factor()) << i;
  }
  EXPECT_NE(whole.factor(), 65536);
  EXPECT_THROW(second.load({}), UserError);
  state["loss_scaler/factor"] = ir::Tensor::scalar<double>(NAN);
  EXPECT_THROW(second.load(state), UserError);
}

// Each part has its own factor; an overflow of one skips the step and moves the factor of that one alone.
TEST(PartScalers, FactorsMovePartByPart) {
  struct TwoParts : testing::QuadrantTask {
    TwoParts() : QuadrantTask(nullptr) {}
    LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override {
      const at::Tensor loss = QuadrantTask::operator()(outputs, batch)[0].second;
      return {{"mild", loss}, {"steep", loss * steepness}};
    }
    double steepness = 1e34;
  };
  const LossScaleOptions options{.growth_interval = 1000};
  Executor executor(small_network(true)), plain(small_network(true));
  TwoParts task;
  Optimizer optimizer(Student::options(0.01, 0), parameters_of(executor)),
      reference(Student::options(0.01, 0), parameters_of(plain));
  PartScalers scalers(options);
  TrainStep step(executor, optimizer, task, {.part_scalers = &scalers}), want(plain, reference, task, {});
  const auto before = state_of(executor);
  EXPECT_FALSE(step(batch(), 1).updated);
  for (const auto& [name, tensor] : executor.named_parameters())
    EXPECT_TRUE(at::equal(tensor, before.at(name))) << name;
  EXPECT_EQ(scalers.of("mild").factor(), 65536);
  EXPECT_EQ(scalers.of("steep").factor(), 32768);
  EXPECT_EQ(scalers.least_factor(), 32768);
  // Where nothing overflows, the gradient is that of the sum.
  task.steepness = 0.5;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(step(batch(), 1).updated);
    EXPECT_TRUE(want(batch(), 1).updated);
  }
  for (const auto& [name, tensor] : plain.named_parameters())
    EXPECT_TRUE(at::allclose(state_of(executor).at(name), tensor, 1e-4, 1e-6)) << name;
  checkpoint::NamedTensors state;
  scalers.save(state);
  PartScalers other(options);
  other.load(state);
  EXPECT_EQ(other.of("mild").factor(), 65536);
  EXPECT_EQ(other.of("steep").factor(), 32768);
}

TEST(GradScaler, AStaticFactorStaysAndDoesNotSkipForEver) {
  GradScaler scaler(static_loss_scale(128));
  for (int i = 0; i < 5000; ++i) scaler.update(i % 50 != 0);
  EXPECT_EQ(scaler.factor(), 128);
  EXPECT_THROW(for (int i = 0; i < 1000; ++i) scaler.update(false), UserError);
}

}  // namespace
}  // namespace octet::train
