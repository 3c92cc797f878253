#include "train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace octet::train {
namespace {

TEST(Schedule, WarmUpRisesLinearlyAndReachesTheFullRate) {
  const ScheduleOptions o{.type = "constant", .warmup = 0.1};
  EXPECT_DOUBLE_EQ(schedule_factor(o, 0, 100), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 9, 100), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 10, 100), 1.0);
}

TEST(Schedule, CosineAndLinearFallToTheMinimum) {
  const ScheduleOptions cosine{.type = "cosine", .min_factor = 0.01};
  EXPECT_DOUBLE_EQ(schedule_factor(cosine, 0, 100), 1.0);
  EXPECT_NEAR(schedule_factor(cosine, 50, 100), 0.01 + 0.99 * 0.5, 1e-12);
  EXPECT_NEAR(schedule_factor(cosine, 100, 100), 0.01, 1e-12);
  const ScheduleOptions linear{.type = "linear"};
  EXPECT_NEAR(schedule_factor(linear, 25, 100), 0.75, 1e-12);
}

TEST(Schedule, StepMultipliesAtEachMilestone) {
  const ScheduleOptions o{.type = "step", .milestones = {0.5, 0.75}, .gamma = 0.1};
  EXPECT_DOUBLE_EQ(schedule_factor(o, 49, 100), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 50, 100), 0.1);
  EXPECT_NEAR(schedule_factor(o, 75, 100), 0.01, 1e-15);
}

// TAO: from min to max exponentially until soft_start, flat until annealing, back exponentially.
TEST(Schedule, SoftStartAnnealingIsExponential) {
  const ScheduleOptions o{.type = "soft_start", .min_factor = 0.01, .soft_start = 0.1, .annealing = 0.7};
  EXPECT_NEAR(schedule_factor(o, 0, 100), 0.01, 1e-12);
  EXPECT_NEAR(schedule_factor(o, 5, 100), 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 30, 100), 1.0);
  EXPECT_NEAR(schedule_factor(o, 85, 100), 0.1, 1e-9);
}

TEST(Schedule, UnknownTypeIsAUsageError) { EXPECT_THROW(schedule_factor({.type = "sine"}, 0, 1), UserError); }

}  // namespace
}  // namespace octet::train
