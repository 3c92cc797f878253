// Advice about activations whose codes below zero are hardly used.
#include "app/range_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/calibration.h"
#include "passes/block_builder.h"
#include "support/random_images.h"

namespace octet::app {
namespace {

TEST(RangeAdvice, IsOfZeroPointsWhereCodesBelowZeroAreUnused) {
  passes::BlockBuilder b({ir::kDynamic, 3, 16, 16});
  ir::Value* first = b.conv(b.x, "first", 8, 3, true);
  b.graph.add_output(b.conv(b.conv(first, "second", 8, 1, true), "third", 4, 1, true));
  octet::testing::RandomImages images(2);
  quant::QuantOptions options;
  const quant::CalibrationSet observed = calibrate(b.graph, images.loader, options, {}, observe_by_engine);
  const auto advice = [&](float least, float largest) {
    std::map<std::string, quant::Range> ranges = observed.ranges(options.calibration);
    for (auto& [name, range] : ranges)
      range = {.amax = std::max(-least, largest), .min = least, .max = largest, .count = 100};
    return asymmetry_advice(b.graph, ranges, options);
  };
  EXPECT_THAT(advice(-0.3f, 10), ::testing::StartsWith("3 of 3 quantized activations"));
  EXPECT_EQ(advice(-3, 10), "");
  EXPECT_EQ(advice(-10, 0.3f), "");
  EXPECT_EQ(advice(0, 10), "");  // that is what unsigned codes are for
  options.placement.target = quant::Target::kTensorRt;
  EXPECT_EQ(advice(-0.3f, 10), "");
  options.placement.target = quant::Target::kAny;
  options.placement.asymmetric_activations = true;
  EXPECT_EQ(advice(-0.3f, 10), "");
}

}  // namespace
}  // namespace octet::app
