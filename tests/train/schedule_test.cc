#include "train/options/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace octet::train {
namespace {

TEST(Schedule, WarmUpRisesLinearlyAndReachesTheFullRate) {
  const ScheduleOptions o{.type = ScheduleType::kConstant, .warmup = 0.1};
  EXPECT_DOUBLE_EQ(schedule_factor(o, 1, 0, 100), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 1, 9, 100), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 1, 10, 100), 1.0);
}

TEST(Schedule, CosineAndLinearFallToTheMinimum) {
  const ScheduleOptions cosine{.type = ScheduleType::kCosine, .warmup = 0, .min_lr = 0.01};
  EXPECT_DOUBLE_EQ(schedule_factor(cosine, 1, 0, 100), 1.0);
  EXPECT_NEAR(schedule_factor(cosine, 1, 50, 100), 0.01 + 0.99 * 0.5, 1e-12);
  EXPECT_NEAR(schedule_factor(cosine, 1, 100, 100), 0.01, 1e-12);
  const ScheduleOptions linear{.type = ScheduleType::kLinear, .warmup = 0};
  EXPECT_NEAR(schedule_factor(linear, 1, 25, 100), 0.75, 1e-12);
}

TEST(Schedule, StepMultipliesAtEachMilestone) {
  const ScheduleOptions o{.type = ScheduleType::kStep, .warmup = 0, .steps = {0.5, 0.75}, .gamma = 0.1};
  EXPECT_DOUBLE_EQ(schedule_factor(o, 1, 49, 100), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 1, 50, 100), 0.1);
  EXPECT_NEAR(schedule_factor(o, 1, 75, 100), 0.01, 1e-15);
}

// TAO: from min to max exponentially until soft_start, flat until annealing, back exponentially.
TEST(Schedule, SoftStartAnnealingIsExponential) {
  const ScheduleOptions o{.type = ScheduleType::kSoftStart, .min_lr = 0.01, .soft_start = 0.1, .annealing = 0.7};
  EXPECT_NEAR(schedule_factor(o, 1, 0, 100), 0.01, 1e-12);
  EXPECT_NEAR(schedule_factor(o, 1, 5, 100), 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 1, 30, 100), 1.0);
  EXPECT_NEAR(schedule_factor(o, 1, 85, 100), 0.1, 1e-9);
}

}  // namespace
}  // namespace octet::train
