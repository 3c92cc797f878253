#include "app/bench/windows.h"

#include <gtest/gtest.h>

namespace octet::app {
namespace {

TEST(WindowTimes, QuantilesAreOfAllRuns) {
  WindowTimes times;
  times.windows = {{5, 1, 4}, {2, 10}, {3, 9, 8, 6, 7}};
  EXPECT_EQ(times.quantile(0.9), 9);
  EXPECT_EQ(times.quantile(0.99), 10);
  EXPECT_EQ(times.quantile(1), 10);
  EXPECT_EQ(times.quantile(0.5), 5);
  EXPECT_EQ(times.quantile(0), times.min());
  times.windows = {{2}};
  EXPECT_EQ(times.quantile(0.9), 2);
}

}  // namespace
}  // namespace octet::app
