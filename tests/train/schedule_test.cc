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
