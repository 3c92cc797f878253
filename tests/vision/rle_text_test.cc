#include "vision/rle_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace octet::vision {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view text, int height = 5, int width = 7) {
  try {
    parse_rle(text, height, width);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(RleText, IsThatOfCoco) {
  // A ring and two corners (mask_test.cc). pycocotools 2.0.11: mask.encode(np.asfortranarray(pixels))["counts"]
  const std::vector<uint32_t> ring = {4, 1, 6, 3, 2, 1, 1, 1, 2, 3, 6, 1, 4};
  EXPECT_EQ(rle_text({5, 7, ring}), "4162LNO0124NN");
  EXPECT_EQ(parse_rle("4162LNO0124NN", 5, 7), Mask(5, 7, ring));
}

TEST(RleText, LeadsBackToTheMask) {
  std::minstd_rand random(11);
  for (int round = 0; round < 300; ++round) {
    const int height = 1 + static_cast<int>(random() % 3000), width = 1 + static_cast<int>(random() % 3000);
    std::vector<uint32_t> counts;
    uint32_t left = static_cast<uint32_t>(height) * static_cast<uint32_t>(width);
    while (left > 0) {
      // Short and very long runs, since the text holds differences.
      counts.push_back(std::min(left, static_cast<uint32_t>(random() % 2 ? random() % 40 : random() % 3000000)));
      left -= counts.back();
    }
    const Mask mask(height, width, counts);
    ASSERT_EQ(parse_rle(rle_text(mask), height, width), mask);
  }
  const int side = 8192;
  const uint32_t half = 8192u * 8192;
  const Mask largest(side, 2 * side, std::vector<uint32_t>{0, half - 1, 1, 1, half - 1});
  EXPECT_EQ(parse_rle(rle_text(largest), side, 2 * side), largest);
}

TEST(RleText, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(error_of("41 2"), HasSubstr("character 3 is no digit"));
  EXPECT_THAT(error_of("41\xff"), HasSubstr("character 3 is no digit"));
  EXPECT_THAT(error_of("41p"), HasSubstr("character 3 is no digit"));
  EXPECT_THAT(error_of("41P"), HasSubstr("ends inside a number, at character 4"));
  EXPECT_THAT(error_of("41PPPPPP0"), HasSubstr("the number at character 3 is too long"));
  EXPECT_THAT(error_of("4O"), HasSubstr("the run at character 2 has -1 pixels"));
  EXPECT_THAT(error_of("41620L"), HasSubstr("the run at character 6 has -1 pixels"));
  EXPECT_THAT(error_of("ooooo4"), HasSubstr("has 167772159 pixels, expected 0 to 134217728"));
  EXPECT_THAT(error_of("4162"), HasSubstr("have 14 pixels, expected 35"));
  EXPECT_THAT(error_of(""), HasSubstr("have 0 pixels, expected 35"));
  EXPECT_THAT(error_of("0", 1 << 20, 1 << 20), HasSubstr("at most"));
}

}  // namespace
}  // namespace octet::vision
