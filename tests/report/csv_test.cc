#include "report/csv.h"

#include <gtest/gtest.h>

#include <cmath>

namespace octet::report {
namespace {

TEST(Csv, QuotesWhatWouldBreakALine) {
  EXPECT_EQ(csv({"a", "b,c"}, {{"1", "say \"no\""}, {"two\nlines", ""}}),
            "a,\"b,c\"\n1,\"say \"\"no\"\"\"\n\"two\nlines\",\n");
}

TEST(Csv, NumbersComeBack) {
  for (const double x : {0.1, 1e300, -2.5, 1.0 / 3}) EXPECT_EQ(std::stod(csv_number(x)), x);
  EXPECT_EQ(csv_number(INFINITY), "");
  EXPECT_EQ(csv_number(NAN), "");
}

}  // namespace
}  // namespace octet::report
