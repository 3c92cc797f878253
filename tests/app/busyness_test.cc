#include "app/bench/busyness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octet::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Busyness, WaitsDecideAndWhereNobodyKnowsThemTheLoad) {
  EXPECT_FALSE(Busyness(12.0, 1000, 3).too_busy(2)) << "a load of the past";
  EXPECT_TRUE(Busyness(0.1, 1000, 400).too_busy(2));
  EXPECT_TRUE(Busyness(12.0, 0, 0).too_busy(2));
  EXPECT_FALSE(Busyness(0.9, 0, 0).too_busy(2));
  EXPECT_FALSE(Busyness(std::nullopt, 0, 0).too_busy(2)) << "nobody knows";
}

TEST(Busyness, SaysWhatItKnows) {
  EXPECT_THAT(Busyness(12.0, 1000, 400).text(),
              AllOf(HasSubstr("waited 40 % of the time for a CPU; load 12.0"), HasSubstr("repeat it")));
  EXPECT_THAT(Busyness(12.0, 0, 0).text(), AllOf(HasSubstr("(load 12.0 before the run)"), Not(HasSubstr("waited"))));
  EXPECT_THAT(Busyness(std::nullopt, 1000, 400).text(), Not(HasSubstr("load")));
}

}  // namespace
}  // namespace octet::app
