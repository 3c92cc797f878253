#include "report/text_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "report/format.h"

namespace octet::report {
namespace {

TEST(Format, NumbersReadWell) {
  EXPECT_EQ(fixed(12.345, 2), "12.35");
  EXPECT_EQ(fixed(NAN, 2), "-");
  EXPECT_EQ(significant(0.012345, 3), "0.0123");
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1210000), "1.21 MB");
  EXPECT_EQ(human_bytes(44.7e6), "44.7 MB");
  EXPECT_EQ(human_count(272474), "272 k");
  EXPECT_EQ(human_count(1.82e9), "1.82 G");
  EXPECT_EQ(human_count(999600), "1.00 M");
  EXPECT_EQ(human_duration(0.42), "0.42 s");
  EXPECT_EQ(human_duration(42.3), "42 s");
  EXPECT_EQ(human_duration(59.7), "1:00");
  EXPECT_EQ(human_duration(187), "3:07");
  EXPECT_EQ(human_duration(3765), "1:02:45");
  EXPECT_EQ(human_duration(-1), "-");
  EXPECT_EQ(human_duration(INFINITY), "-");
  EXPECT_EQ(display_width("é·"), 2u);
}

TEST(Format, HoldsTheLargestDouble) {
  EXPECT_EQ(fixed(std::numeric_limits<double>::max(), 2).size(), 312u);
}

TEST(LooksNumeric, KnowsUnitsAndDurations) {
  for (const char* yes : {"1", "-2.5", "1e-9", "12 %", "12%", "3.4x", "0.12 ms", "5.1 GB", "-", "1:02:45", "nan"})
    EXPECT_TRUE(looks_numeric(yes)) << yes;
  for (const char* no : {"", "conv1", "3x3 conv", "1 of 2", "28x28", " 1", "12 apples a day"})
    EXPECT_FALSE(looks_numeric(no)) << no;
}

TextTable example() {
  TextTable table({"layer", "ms", "share"});
  table.add_row({"conv|1", "0.5", "5 %"});
  table.add_row({"köpfe", "10.25"});
  table.add_rule();
  table.add_row({"sum", "10.75", "100 %"});
  return table;
}

TEST(TextTable, AlignsColumns) {
  EXPECT_EQ(example().text(),
            "layer      ms  share\n"
            "------  -----  -----\n"
            "conv|1    0.5    5 %\n"
            "köpfe   10.25\n"
            "------  -----  -----\n"
            "sum     10.75  100 %\n");
}

TEST(TextTable, WritesMarkdown) {
  EXPECT_EQ(example().markdown(),
            "| layer | ms | share |\n"
            "|---|---:|---:|\n"
            "| conv\\|1 | 0.5 | 5 % |\n"
            "| köpfe | 10.25 |  |\n"
            "| sum | 10.75 | 100 % |\n");
}

TEST(TextTable, AlignmentCanBeFixed) {
  TextTable table({"a", "b"}, {Align::kRight, Align::kLeft});
  table.add_row({"x", "1"});
  table.add_row({"long", "22"});
  EXPECT_EQ(table.text(), "   a  b\n----  --\n   x  1\nlong  22\n");
  EXPECT_THROW(table.add_row({"1", "2", "3"}), InternalError);
}

}  // namespace
}  // namespace octet::report
