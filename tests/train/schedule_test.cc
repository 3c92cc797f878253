#include "train/options/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace octet::train {
namespace {

double factor(const ScheduleOptions& options, int64_t step) {
  return schedule_factor(options, 1, {.step = step, .total = 100});
}

TEST(Schedule, WarmUpRisesLinearlyAndReachesTheFullRate) {
  const ScheduleOptions o{.type = ScheduleType::kConstant, .warmup = 0.1};
  EXPECT_DOUBLE_EQ(factor(o, 0), 0.1);
  EXPECT_DOUBLE_EQ(factor(o, 9), 1.0);
  EXPECT_DOUBLE_EQ(factor(o, 10), 1.0);
}

TEST(Schedule, CosineAndLinearFallToTheMinimum) {
  const ScheduleOptions cosine{.type = ScheduleType::kCosine, .warmup = 0, .min_lr = 0.01};
  EXPECT_DOUBLE_EQ(factor(cosine, 0), 1.0);
  EXPECT_NEAR(factor(cosine, 50), 0.01 + 0.99 * 0.5, 1e-12);
  EXPECT_NEAR(factor(cosine, 100), 0.01, 1e-12);
  const ScheduleOptions linear{.type = ScheduleType::kLinear, .warmup = 0};
  EXPECT_NEAR(factor(linear, 25), 0.75, 1e-12);
}

TEST(Schedule, StepMultipliesAtEachMilestone) {
  const ScheduleOptions o{.type = ScheduleType::kStep, .warmup = 0, .steps = {0.5, 0.75}, .gamma = 0.1};
  EXPECT_DOUBLE_EQ(factor(o, 49), 1.0);
  EXPECT_DOUBLE_EQ(factor(o, 50), 0.1);
  EXPECT_NEAR(factor(o, 75), 0.01, 1e-15);
}

// The lambdas of transformers/optimization.py, get_*_schedule_with_warmup, after their warm-up, and num_cycles = 0.5.
TEST(Schedule, DecaysAreThoseOfHuggingFace) {
  const double lr = 5e-4, pi = std::acos(-1.0);
  for (const int64_t total : {100, 137, 1000})
    for (const int64_t warmup : {0, 1, 10, 99})
      for (int64_t step = warmup; step < total; ++step) {
        const double progress =
            static_cast<double>(step - warmup) / static_cast<double>(std::max<int64_t>(1, total - warmup));
        const auto ours = [&](ScheduleType type, double power = 1, double end = 0) {
          ScheduleOptions o{.type = type, .warmup = 0, .warmup_steps = warmup, .min_lr = end, .power = power};
          return lr * schedule_factor(o, lr, {.step = step, .total = total});
        };
        EXPECT_NEAR(ours(ScheduleType::kConstant), lr, 1e-15);
        EXPECT_NEAR(ours(ScheduleType::kLinear),
                    lr * std::max(0.0, static_cast<double>(total - step) / static_cast<double>(total - warmup)), 1e-15);
        EXPECT_NEAR(ours(ScheduleType::kCosine), lr * std::max(0.0, 0.5 * (1 + std::cos(pi * 0.5 * 2 * progress))),
                    1e-15);
        for (const double power : {0.5, 1.0, 2.0, 3.0}) {
          const double end = 1e-7, remaining = 1 - progress;
          EXPECT_NEAR(ours(ScheduleType::kPolynomial, power, end), (lr - end) * std::pow(remaining, power) + end,
                      1e-15);
        }
      }
}

// The schedulers of NVIDIA's BERT (DeepLearningExamples, PyTorch/LanguageModeling/BERT/schedulers.py): their last_epoch
// is the number of the step that is to be made, from 1 on.
TEST(Schedule, WarmUpAndPolynomialAreThoseOfNvidiasBert) {
  const int64_t total = 1000;
  const double warmup = 0.2843;
  const ScheduleOptions poly{
      .type = ScheduleType::kPolynomial, .warmup = warmup, .decay_from = DecayFrom::kStart, .power = 0.5};
  for (int64_t step = 0; step < total; ++step) {
    const double progress = static_cast<double>(step + 1) / static_cast<double>(total);
    if (step == 284) continue;  // 284.3 steps of warm-up are 284
    const double want = progress < warmup ? progress / (284.0 / total) : std::pow(1 - progress, 0.5);
    EXPECT_NEAR(schedule_factor(poly, 6e-3, {.step = step, .total = total}), want, 1e-12) << step;
  }
}

// torch.optim.lr_scheduler.MultiStepLR: gamma^bisect_right(milestones, epoch), epochs before the current one counted.
TEST(Schedule, MilestonesAreThoseOfTorch) {
  const ScheduleOptions o{.type = ScheduleType::kStep, .warmup = 0, .milestones = {30, 60, 80}, .gamma = 0.1};
  const int64_t steps = 7;
  for (int64_t epoch = 0; epoch < 90; ++epoch)
    for (int64_t step = 0; step < steps; ++step) {
      const int reached = (epoch >= 30) + (epoch >= 60) + (epoch >= 80);
      const Progress at{.step = epoch * steps + step, .total = 90 * steps, .steps_per_epoch = steps};
      EXPECT_NEAR(schedule_factor(o, 0.1, at), std::pow(0.1, reached), 1e-15) << epoch;
    }
}

// A step of no rate would be lost, so the warm-up has its first one at 1 / w; NVIDIA's ConvNets count epochs so, too.
TEST(Schedule, WarmUpMayCountStepsOrEpochs) {
  const ScheduleOptions steps{.type = ScheduleType::kConstant, .warmup_steps = 4};
  const ScheduleOptions epochs{.type = ScheduleType::kConstant, .warmup_epochs = 0.4};
  for (int64_t step = 0; step < 100; ++step) {
    const double want = step < 4 ? static_cast<double>(step + 1) / 4 : 1;
    EXPECT_DOUBLE_EQ(factor(steps, step), want);
    EXPECT_DOUBLE_EQ(schedule_factor(epochs, 1, {.step = step, .total = 100, .steps_per_epoch = 10}), want);
  }
}

// The formula of TAO's core/hooks: lr = exp(ln min + t (ln max - ln min)).
TEST(Schedule, SoftStartAnnealingIsTheFormulaOfTao) {
  const double low = 5e-6, high = 5e-4;
  for (const auto& [soft_start, annealing] : {std::pair(0.1, 0.7), {0.0, 0.7}, {0.1, 1.0}, {0.0, 1.0}, {0.5, 0.5}}) {
    const ScheduleOptions o{
        .type = ScheduleType::kSoftStartAnnealing, .min_lr = low, .soft_start = soft_start, .annealing = annealing};
    for (int64_t step = 0; step < 200; ++step) {
      const double p = static_cast<double>(step) / 200;
      double t = soft_start > 0 && p < soft_start ? p / soft_start : 1;
      if (annealing < 1 && p > annealing) t = (1 - p) / (1 - annealing);
      const double want = std::exp(std::log(low) + t * (std::log(high) - std::log(low)));
      EXPECT_NEAR(high * schedule_factor(o, high, {.step = step, .total = 200}), want, 1e-12 * want)
          << soft_start << ' ' << annealing << " at " << step;
    }
  }
}

const ScheduleOptions kEarly{.type = ScheduleType::kEarlyStoppingAnnealing,
                             .min_lr = 0.01,
                             .soft_start_epochs = 2,
                             .annealing_epochs = 4,
                             .patience_steps = 3};

TEST(Schedule, EarlyStoppingAnnealingRisesWaitsAndFalls) {
  const auto at = [](int64_t step, std::optional<int64_t> from) {
    return schedule_factor(kEarly, 1, {.step = step, .total = 1000, .steps_per_epoch = 10, .annealing_from = from});
  };
  EXPECT_NEAR(at(0, {}), 0.01, 1e-12);
  EXPECT_NEAR(at(10, {}), 0.1, 1e-12) << "half of the rise";
  EXPECT_DOUBLE_EQ(at(20, {}), 1);
  EXPECT_DOUBLE_EQ(at(900, {}), 1) << "as long as the validation improves";
  EXPECT_DOUBLE_EQ(at(70, 7), 1);
  EXPECT_NEAR(at(90, 7), 0.1, 1e-12) << "half of the fall";
  EXPECT_NEAR(at(110, 7), 0.01, 1e-12);
  EXPECT_NEAR(at(999, 7), 0.01, 1e-12) << "and stays there";
}

EarlyStopping after(const std::vector<double>& values, bool larger_is_better = true) {
  std::vector<Measurement> measured;
  for (const double value : values) measured.push_back({static_cast<int64_t>(measured.size()) + 1, value});
  return early_stopping(kEarly, measured, larger_is_better);
}

// By hand: patience of three epochs, a fall of four.
TEST(Schedule, EarlyStoppingFollowsTheValidation) {
  EXPECT_EQ(after({}).annealing_from, std::nullopt);
  EXPECT_EQ(after({1, 2, 3, 4, 5, 6}).annealing_from, std::nullopt);
  EXPECT_EQ(after({1, 5, 4, 4}).annealing_from, std::nullopt) << "two epochs without";
  EXPECT_EQ(after({1, 5, 4, 4, 4}).annealing_from, 5);
  EXPECT_EQ(after({1, 5, 4, 4, 6}).annealing_from, std::nullopt) << "in time";
  EXPECT_EQ(after({1, 5, 5, 5, 5}).annealing_from, 5) << "as good is no better";
  EXPECT_EQ(after({9, 5, 6, 6, 6}, false).annealing_from, 5);
  EXPECT_EQ(after({NAN, NAN, 1, NAN, NAN, NAN}).annealing_from, 6) << "from the first number on";
  // Annealing starts after epoch 5, and with it a new best, 4; it is over after epoch 9.
  EXPECT_FALSE(after({1, 5, 4, 4, 4, 4, 4, 4, 4}).stop) << "the fall is not over";
  EXPECT_TRUE(after({1, 5, 4, 4, 4, 4, 4, 4, 4, 4}).stop);
  EXPECT_FALSE(after({1, 5, 4, 4, 4, 4, 4, 4, 4.5, 4}).stop) << "improved two epochs ago";
  EXPECT_TRUE(after({1, 5, 4, 4, 4, 4, 4, 4, 4.5, 4, 4, 4}).stop);
}

TEST(Schedule, AnnealingWaitsForTheEndOfTheRise) {
  ScheduleOptions slow = kEarly;
  slow.soft_start_epochs = 6;
  std::vector<Measurement> measured;
  for (int64_t epoch = 1; epoch <= 6; ++epoch) {
    EXPECT_EQ(early_stopping(slow, measured, true).annealing_from, std::nullopt);
    measured.push_back({epoch, 1});
  }
  EXPECT_EQ(early_stopping(slow, measured, true).annealing_from, 6);
}

}  // namespace
}  // namespace octet::train
