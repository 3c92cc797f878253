#include "tasks/detectnet_v2/loss_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace octet::tasks::detectnet_v2 {
namespace {

constexpr Grid kMaskGrid{.classes = 2, .rows = 4, .columns = 6, .stride = 16};
const std::vector<std::string> kClasses = {"person", "car"};

vision::Object object(vision::Box box, int label, const char* source = nullptr) {
  return {.box = box, .label = label, .source_class = source ? std::make_shared<const std::string>(source) : nullptr};
}

// A car of 48 x 32 pixels whose cells are columns 1 to 3 of rows 1 and 2, a small one in cell (0, 5), a person, and
// what nobody looked at in rows 2 and 3 of column 5.
data::Annotation scene() {
  data::Annotation a;
  a.objects = {object({16, 16, 64, 48}, 1, "van"), object({82, 2, 94, 14}, 1), object({0, 0, 40, 60}, 0)};
  a.others = {object({80, 30, 96, 64}, -1, "DontCare")};
  return a;
}

// The cells with the factor, as rows of the class; the others must have 1.
std::vector<std::string> masked(const LossMaskOptions& spec, MaskObjective objective, int label) {
  const data::Annotation a = scene();
  const GridTruth truth = rasterize(a.objects, kMaskGrid, {});
  const std::vector<float> factors = LossMask(spec, kClasses).factors(objective, a, truth, kMaskGrid);
  std::vector<std::string> out;
  for (int row = 0; row < kMaskGrid.rows; ++row) {
    std::string& line = out.emplace_back();
    for (int column = 0; column < kMaskGrid.columns; ++column) {
      const float factor = factors[static_cast<size_t>(kMaskGrid.at(label, row, column))];
      EXPECT_TRUE(factor == 1 || factor == static_cast<float>(spec.mask_multiplier)) << factor;
      line += factor == 1 ? '.' : 'x';
    }
  }
  return out;
}

using ::testing::ElementsAre;
const auto kNothing = ElementsAre("......", "......", "......", "......");

TEST(LossMask, ChoosesByTheSizeOfTheBox) {
  const LossMaskOptions small{.filters = {{.bbox_dimensions = BoxDimensions{.max_width = 20}}}, .mask_multiplier = 0};
  EXPECT_THAT(masked(small, MaskObjective::kCoverage, 1), ElementsAre(".....x", "......", "......", "......"));
  EXPECT_THAT(masked(small, MaskObjective::kBbox, 1), ElementsAre(".....x", "......", "......", "......"));
  EXPECT_THAT(masked(small, MaskObjective::kBbox, 0), kNothing) << "the car is no person";
  const LossMaskOptions exact{
      .filters = {{.bbox_dimensions = BoxDimensions{.min_width = 48, .min_height = 32, .max_width = 48}}},
      .mask_multiplier = 3};
  EXPECT_THAT(masked(exact, MaskObjective::kCoverage, 1), ElementsAre("......", ".xxx..", ".xxx..", "......"));
}

TEST(LossMask, ChoosesByPlace) {
  const auto at = [](CropBox crop) {
    return LossMaskOptions{.filters = {{.bbox_crop = crop}}, .mask_multiplier = 0.5};
  };
  const auto touching = at({.crop_left = 64, .crop_top = 0, .crop_right = 82, .crop_bottom = 64});
  EXPECT_THAT(masked(touching, MaskObjective::kCoverage, 1), kNothing) << "common borders are no overlap";
  const auto over = at({.crop_left = 63, .crop_top = 47, .crop_right = 96, .crop_bottom = 64});
  EXPECT_THAT(masked(over, MaskObjective::kCoverage, 1), ElementsAre("......", ".xxx..", ".xxx..", "......"));
}

TEST(LossMask, ChoosesByWhatTheFilesSay) {
  const LossMaskOptions ignored{.filters = {{.source_classes = {"DontCare"}}}, .mask_multiplier = 0};
  for (const int label : {0, 1})
    EXPECT_THAT(masked(ignored, MaskObjective::kCoverage, label), ElementsAre("......", "......", ".....x", ".....x"))
        << "whatever the class; the center of the cell above lies outside";
  const LossMaskOptions vans{
      .filters = {{.source_classes = {"van"}, .target_classes = {"car"}, .objectives = {MaskObjective::kBbox}}},
      .mask_multiplier = 0};
  EXPECT_THAT(masked(vans, MaskObjective::kBbox, 1), ElementsAre("......", ".xxx..", ".xxx..", "......"));
  EXPECT_THAT(masked(vans, MaskObjective::kBbox, 0), kNothing);
  EXPECT_THAT(masked(vans, MaskObjective::kCoverage, 1), kNothing);
}

TEST(LossMask, MayKeepWhatIsCovered) {
  LossMaskOptions spec{.filters = {{.bbox_dimensions = BoxDimensions{}}}, .mask_multiplier = 0};
  spec.preserve_ground_truth = true;
  RasterizerOptions ellipses;  // that leave cells at the borders of the boxes uncovered
  ellipses.classes.all.bbox_min_radius = 0.1;
  const GridTruth truth = rasterize(scene().objects, kMaskGrid, ellipses);
  const std::vector<float> factors =
      LossMask(spec, kClasses).factors(MaskObjective::kCoverage, scene(), truth, kMaskGrid);
  int masked = 0;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (truth.coverage[i] > 0) {
      EXPECT_EQ(factors[i], 1) << i;
    }
    masked += factors[i] == 0;
  }
  EXPECT_GT(masked, 0);
}

TEST(LossMask, FiltersThatChooseNothingAreNamedOnce) {
  LossMask mask({.filters = {{.source_classes = {"DontCare"}}, {.source_classes = {"dontcare"}}}}, kClasses);
  mask.factors(MaskObjective::kCoverage, scene(), rasterize(scene().objects, kMaskGrid, {}), kMaskGrid);
  EXPECT_THAT(mask.idle_filters(),
              ElementsAre(::testing::HasSubstr("loss_mask_label_filter.filters[1] chose no object in the first epoch; "
                                               "names of source classes match exactly")));
  EXPECT_THAT(mask.idle_filters(), ElementsAre());
}

TEST(LossMask, AClassThatThereIsNotIsRefused) {
  const LossMaskOptions spec{.filters = {{.source_classes = {"van"}, .target_classes = {"cars"}}}};
  try {
    LossMask mask(spec, kClasses);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("'cars', which is none of the classes; did you mean 'car'?"));
  }
}

}  // namespace
}  // namespace octet::tasks::detectnet_v2
