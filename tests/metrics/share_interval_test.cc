#include "metrics/share_interval.h"

#include <gtest/gtest.h>

namespace octet::metrics {
namespace {

// R: prop.test(998, 1000, correct = FALSE) and its like.
TEST(ShareInterval, IsWilsons) {
  const Interval most = share_interval(998, 1000);
  EXPECT_NEAR(most.low, 0.992737, 1e-5);
  EXPECT_NEAR(most.high, 0.999451, 1e-5);
  const Interval half = share_interval(5, 10);
  EXPECT_NEAR(half.low, 0.236593, 1e-5);
  EXPECT_NEAR(half.high, 0.763407, 1e-5);
}

TEST(ShareInterval, KnowsTheEnds) {
  const Interval all = share_interval(18, 18), none = share_interval(0, 18), nothing = share_interval(0, 0);
  EXPECT_NEAR(all.low, 0.824121, 1e-5);
  EXPECT_EQ(all.high, 1);
  EXPECT_NEAR(none.low, 0, 1e-12);
  EXPECT_EQ(nothing.low, 0);
  EXPECT_EQ(nothing.high, 1);
}

}  // namespace
}  // namespace octet::metrics
