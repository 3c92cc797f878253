// Opt levels: what they are presets of, and that a network trains in each of them.
#include "train/options/amp.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "train/loss_scaler.h"
#include "train/precision.h"
#include "train/small_training.h"
#include "train/step.h"

namespace octet::train {
namespace {

using testing::batches_of;
using testing::parameters_of;
using testing::quadrants;
using testing::small_network;

MixedPrecision level(OptLevel opt_level, Precision precision = Precision::kAuto) {
  return resolve(precision, {.opt_level = opt_level}, "cuda");
}

// apex/amp/frontend.py at tag 25.05, the classes O0 to O3; patch_torch_functions is !cast_model here.
TEST(Amp, LevelsAreThoseOfApex) {
  const MixedPrecision o0 = level(OptLevel::kO0), o1 = level(OptLevel::kO1), o2 = level(OptLevel::kO2),
                       o3 = level(OptLevel::kO3);
  EXPECT_EQ(o0.type, Precision::kFloat32);
  for (const MixedPrecision& low : {o1, o2, o3}) EXPECT_EQ(low.type, Precision::kFloat16);
  EXPECT_FALSE(o0.cast_model || o1.cast_model);
  EXPECT_TRUE(o2.cast_model && o3.cast_model);
  EXPECT_TRUE(o2.keep_batchnorm_fp32 && o2.master_weights);
  EXPECT_FALSE(o3.keep_batchnorm_fp32 || o3.master_weights);
  EXPECT_FALSE(o0.loss_scale || o3.loss_scale);
  for (const MixedPrecision& scaled : {o1, o2}) {
    ASSERT_TRUE(scaled.loss_scale);
    EXPECT_EQ(scaled.loss_scale->init_scale, 65536);
    EXPECT_EQ(scaled.loss_scale->max_loss_scale, 16777216);
  }
}

TEST(Amp, PropertiesMayBeOverridden) {
  const auto with = [](AmpOptions amp) { return resolve(Precision::kAuto, amp, "cuda"); };
  EXPECT_FALSE(with({.opt_level = OptLevel::kO2, .keep_batchnorm_fp32 = false}).keep_batchnorm_fp32);
  EXPECT_TRUE(with({.opt_level = OptLevel::kO3, .keep_batchnorm_fp32 = true}).keep_batchnorm_fp32);
  EXPECT_FALSE(with({.opt_level = OptLevel::kO2, .master_weights = false}).master_weights);
  const MixedPrecision fixed = with({.opt_level = OptLevel::kO2, .loss_scale = "128.0"});
  EXPECT_EQ(fixed.loss_scale->init_scale, 128);
  EXPECT_EQ(fixed.loss_scale->growth_factor, 1);
  EXPECT_EQ(with({.opt_level = OptLevel::kO3, .loss_scale = "dynamic"}).loss_scale->growth_factor, 2);
  EXPECT_EQ(with({.opt_level = OptLevel::kO3, .loss_scale = "0"}).loss_scale->growth_factor, 2)
      << "as in NVIDIA's BERT";
  EXPECT_FALSE(with({.opt_level = OptLevel::kO2, .loss_scale = "1"}).loss_scale);
  EXPECT_EQ(text(fixed), "fp16, cast_model true, keep_batchnorm_fp32 true, master_weights true, loss_scale 128");
}

TEST(Amp, PrecisionNamesTheLowType) {
  EXPECT_EQ(level(OptLevel::kO2, Precision::kBFloat16).type, Precision::kBFloat16);
  EXPECT_FALSE(level(OptLevel::kO2, Precision::kBFloat16).loss_scale) << "bf16 has the range of float32";
  EXPECT_FALSE(level(OptLevel::kNone, Precision::kBFloat16).loss_scale);
  EXPECT_TRUE(level(OptLevel::kNone, Precision::kFloat16).loss_scale);
  EXPECT_EQ(level(OptLevel::kNone, Precision::kAuto).type, Precision::kBFloat16);
  EXPECT_EQ(complaint(Precision::kAuto, {.opt_level = OptLevel::kO0}), "");
  EXPECT_NE(complaint(Precision::kFloat16, {.opt_level = OptLevel::kO0}), "");
  EXPECT_NE(complaint(Precision::kFloat32, {.opt_level = OptLevel::kO1}), "");
  EXPECT_NE(complaint(Precision::kAuto, {.opt_level = OptLevel::kO1, .keep_batchnorm_fp32 = true}), "");
  EXPECT_NE(complaint(Precision::kFloat16, {.master_weights = true}), "");
  EXPECT_EQ(complaint(Precision::kBFloat16, {.opt_level = OptLevel::kO2, .master_weights = false}), "");
}

struct Level {
  const char* name;
  OptLevel opt_level;
  Precision precision;
  bool quantized;
};

ExecutorOptions executor_options(const MixedPrecision& mixed) {
  return {.precision = mixed.type, .cast_model = mixed.cast_model, .keep_batchnorm_fp32 = mixed.keep_batchnorm_fp32};
}

std::vector<NamedParameter> with_masters(const Executor& executor, bool masters) {
  std::vector<NamedParameter> out = parameters_of(executor);
  for (NamedParameter& p : out)
    if (masters && is_low(p.tensor.scalar_type())) p.master = p.tensor.detach().to(at::kFloat);
  return out;
}

class AmpLevels : public ::testing::TestWithParam<Level> {};

// Weights, gradients, statistics and scales are of the types that the level says, and the loss falls as in float32.
TEST_P(AmpLevels, TrainOnTheCpu) {
  const Level& l = GetParam();
  const MixedPrecision mixed = resolve(l.precision, {.opt_level = l.opt_level}, "cuda");
  const at::ScalarType low = compute_type(mixed.type);
  Executor executor(small_network(l.quantized), executor_options(mixed)), plain(small_network(l.quantized));
  for (const auto& tensors : {executor.named_parameters(), executor.named_buffers()})
    for (const auto& [name, tensor] : tensors) {
      const bool norm = name.starts_with("bn"), scale = name.ends_with("/scale");
      const bool cast = mixed.cast_model && !scale && !(norm && mixed.keep_batchnorm_fp32);
      EXPECT_EQ(tensor.scalar_type(), cast ? low : at::kFloat) << name;
    }
  OptimizerOptions sgd;
  sgd.lr = 0.05;
  const std::vector<NamedParameter> parameters = with_masters(executor, mixed.master_weights);
  Optimizer optimizer(sgd, parameters), reference(sgd, parameters_of(plain));
  std::optional<GradScaler> scaler;
  if (mixed.loss_scale) scaler.emplace(*mixed.loss_scale);
  testing::QuadrantTask task(nullptr);
  TrainStep step(executor, optimizer, task, {.scaler = scaler ? &*scaler : nullptr}), want(plain, reference, task, {});
  double first = 0, last = 0, float_last = 0;
  const std::vector<data::Batch> batches = batches_of(*quadrants(32 * 12, 21), 32);
  for (int epoch = 0; epoch < 3; ++epoch)
    for (const data::Batch& batch : batches) {
      const StepLoss loss = step(batch, 1);
      EXPECT_TRUE(std::isfinite(loss.total));
      if (first == 0) first = loss.total;
      last = loss.total;
      float_last = want(batch, 1).total;
    }
  EXPECT_LT(last, first / 2);
  EXPECT_NEAR(last, float_last, 0.15 * first);
  for (const NamedParameter& p : parameters) {
    if (!p.master.defined()) continue;
    EXPECT_TRUE(at::equal(p.tensor.detach(), p.master.to(low))) << p.name;
  }
  const at::Tensor out = executor.forward({images_of(batches[0])}, Mode::kEval)[0];
  EXPECT_EQ(out.scalar_type(), at::kFloat) << "the loss gets float32 from every level";
}

INSTANTIATE_TEST_SUITE_P(All, AmpLevels,
                         ::testing::Values(Level{"O0", OptLevel::kO0, Precision::kAuto, false},
                                           Level{"O1", OptLevel::kO1, Precision::kAuto, false},
                                           Level{"O2", OptLevel::kO2, Precision::kAuto, false},
                                           Level{"O3", OptLevel::kO3, Precision::kAuto, false},
                                           Level{"O0_qat", OptLevel::kO0, Precision::kAuto, true},
                                           Level{"O1_qat", OptLevel::kO1, Precision::kAuto, true},
                                           Level{"O2_qat", OptLevel::kO2, Precision::kAuto, true},
                                           Level{"O3_qat", OptLevel::kO3, Precision::kAuto, true},
                                           Level{"O1_bf16", OptLevel::kO1, Precision::kBFloat16, false},
                                           Level{"O2_bf16", OptLevel::kO2, Precision::kBFloat16, false},
                                           Level{"O3_bf16", OptLevel::kO3, Precision::kBFloat16, false},
                                           Level{"O1_bf16_qat", OptLevel::kO1, Precision::kBFloat16, true},
                                           Level{"O2_bf16_qat", OptLevel::kO2, Precision::kBFloat16, true},
                                           Level{"O3_bf16_qat", OptLevel::kO3, Precision::kBFloat16, true}),
                         [](const auto& info) { return std::string(info.param.name); });

// A gradient too small for float16 is not lost where the loss is scaled, and is without.
TEST(Amp, ScalingKeepsSmallGradients) {
  for (const bool scaled : {true, false}) {
    Executor executor(small_network(false), {.precision = Precision::kFloat16});
    struct Gentle : testing::QuadrantTask {
      Gentle() : QuadrantTask(nullptr) {}
      LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override {
        return {{"loss", QuadrantTask::operator()(outputs, batch)[0].second * 1e-7}};
      }
    } task;
    OptimizerOptions adam;
    adam.type = OptimizerType::kAdam;
    adam.weight_decay = 0;
    Optimizer optimizer(adam, parameters_of(executor));
    GradScaler scaler(LossScaleOptions{});
    const at::Tensor before = executor.named_parameters().at(0).second.detach().clone();
    TrainStep step(executor, optimizer, task, {.scaler = scaled ? &scaler : nullptr});
    EXPECT_TRUE(step(batches_of(*quadrants(16, 1), 16)[0], 1).updated);
    EXPECT_EQ(at::equal(before, executor.named_parameters().at(0).second.detach()), !scaled);
  }
}

}  // namespace
}  // namespace octet::train
