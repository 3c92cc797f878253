// GridSample against its formula: every pixel of the infinite plane that the padding makes, times what it weighs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "one_operation.h"

namespace octet {
namespace {

using dense::Attributes;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::OneOperation;

struct Case {
  std::string mode, padding;
  bool align_corners;

  Attributes attributes() const {
    return {{"mode", mode}, {"padding_mode", padding}, {"align_corners", int64_t{align_corners}}};
  }
};

std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const bool align : {false, true}) out.push_back({mode, padding, align});
  return out;
}

double weight(const std::string& mode, double distance) {
  const double d = std::abs(distance), a = -0.75;
  if (mode == "linear") return d < 1 ? 1 - d : 0;
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// The pixel that lies at a place of the plane; -1: zero.
int64_t pixel(int64_t place, int64_t length, const Case& c) {
  if (place >= 0 && place < length) return place;
  if (c.padding == "zeros") return -1;
  if (c.padding == "border") return place < 0 ? 0 : length - 1;
  if (length == 1) return 0;
  while (place < 0 || place >= length) {
    if (place < 0) place = c.align_corners ? -place : -place - 1;
    if (place >= length) place = c.align_corners ? 2 * (length - 1) - place : 2 * length - 1 - place;
  }
  return place;
}

// For each axis its pixels with their weights.
std::vector<std::pair<int64_t, double>> about(float coordinate, int64_t length, const Case& c) {
  const auto size = static_cast<float>(length);
  const float x = c.align_corners ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
  std::vector<std::pair<int64_t, double>> out;
  if (c.mode == "nearest") {
    out.emplace_back(pixel(std::llrint(x), length, c), 1);
  } else {
    for (int64_t place = std::llrint(x) - 3; place <= std::llrint(x) + 3; ++place)
      out.emplace_back(pixel(place, length, c), weight(c.mode, static_cast<double>(x) - static_cast<double>(place)));
  }
  std::erase_if(out, [](const auto& p) { return p.first < 0 || p.second == 0; });
  return out;
}

std::vector<float> random_floats(size_t count, float low, float high) {
  static std::mt19937 random(7);
  std::uniform_real_distribution<float> number(low, high);
  std::vector<float> out(count);
  for (float& v : out) v = number(random);
  return out;
}

TEST(GridSample, IsItsFormulaOverTwoAxes) {
  constexpr int64_t kImages = 2, kChannels = 3, kHeight = 5, kWidth = 4, kRows = 6, kColumns = 7;
  const std::vector<float> x = random_floats(kImages * kChannels * kHeight * kWidth, -1, 1);
  const std::vector<float> grid = random_floats(kImages * kRows * kColumns * 2, -2.6f, 2.6f);
  for (const Case& c : all_cases()) {
    const auto got = OneOperation("GridSample", c.attributes())
                         .with<float>({kImages, kChannels, kHeight, kWidth}, x)
                         .with<float>({kImages, kRows, kColumns, 2}, grid)
                         .run(2)
                         .at(0);
    ASSERT_EQ(got.shape(), (dense::Shape{kImages, kChannels, kRows, kColumns}));
    for (int64_t n = 0; n < kImages; ++n)
      for (int64_t p = 0; p < kRows * kColumns; ++p) {
        const float* place = grid.data() + (n * kRows * kColumns + p) * 2;
        for (int64_t k = 0; k < kChannels; ++k) {
          double want = 0;
          for (const auto& [row, wy] : about(place[1], kHeight, c))
            for (const auto& [column, wx] : about(place[0], kWidth, c))
              want +=
                  wy * wx *
                  static_cast<double>(x[static_cast<size_t>(((n * kChannels + k) * kHeight + row) * kWidth + column)]);
          EXPECT_NEAR(got.values<float>()[static_cast<size_t>((n * kChannels + k) * kRows * kColumns + p)], want, 1e-5)
              << c.mode << " " << c.padding << " " << c.align_corners << " at " << place[0] << ", " << place[1];
        }
      }
  }
}

TEST(GridSample, TakesOneAndThreeAxes) {
  for (const Case& c : all_cases()) {
    const std::vector<float> line = random_floats(5, -1, 1), along = random_floats(9, -2, 2);
    const auto of_line =
        OneOperation("GridSample", c.attributes()).with<float>({1, 1, 5}, line).with<float>({1, 9, 1}, along).floats();
    // The same image, once in a volume of one row and one plane, in whose middle all places lie.
    std::vector<float> places;
    for (const float a : along) places.insert(places.end(), {a, 0, 0});
    const auto of_volume = OneOperation("GridSample", c.attributes())
                               .with<float>({1, 1, 1, 1, 5}, line)
                               .with<float>({1, 1, 1, 9, 3}, places)
                               .floats();
    for (size_t i = 0; i < along.size(); ++i) {
      double want = 0;
      for (const auto& [at, w] : about(along[i], 5, c)) want += w * static_cast<double>(line[static_cast<size_t>(at)]);
      EXPECT_NEAR(of_line[i], want, 1e-5) << c.mode << " " << c.padding << " " << c.align_corners;
      EXPECT_NEAR(of_volume[i], want, 1e-5) << c.mode << " " << c.padding << " " << c.align_corners;
    }
  }
}

// Of an image of ones every weighted sum is 1, or 0 far outside where zeros are.
TEST(GridSample, ReadsNothingOutsideTheImageWhateverTheGridSays) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();
  const std::vector<float> hostile = {std::nanf(""), kInfinity, -kInfinity, kMost, -kMost, 1e30f,
                                      -1e30f,        1e18f,     -1e9f,      3e9f,  1e5f};
  std::vector<float> grid;
  for (const float y : hostile)
    for (const float x : hostile) grid.insert(grid.end(), {x, y});
  const auto n = static_cast<int64_t>(hostile.size());
  for (const Case& c : all_cases())
    for (const int64_t size : {1, 3}) {
      const std::vector<float> got = OneOperation("GridSample", c.attributes())
                                         .with<float>({1, 1, size, size}, std::vector<float>(size * size, 1.0f))
                                         .with<float>({1, n, n, 2}, grid)
                                         .floats();
      if (c.align_corners && size == 1) {  // 0 times infinity; any finite coordinate is the one pixel's
        for (const float v : got) EXPECT_TRUE(std::abs(v) < 1e-6f || std::abs(v - 1) < 1e-6f);
        continue;
      }
      EXPECT_THAT(got, Each(::testing::FloatNear(c.padding == "zeros" ? 0 : 1, 1e-5f)))
          << c.mode << " " << c.padding << " " << c.align_corners << " of " << size;
    }
}

TEST(GridSample, ReflectsManyTimes) {
  // Pixels 0 1 2 at the centers -2/3 0 2/3; every 4 units of the coordinate are the same again.
  const Attributes attributes = Case{"linear", "reflection", false}.attributes();
  const std::vector<float> got = OneOperation("GridSample", attributes)
                                     .with<float>({1, 1, 3}, {10, 20, 30})
                                     .with<float>({1, 6, 1}, {0, 4, -8, 2, 6, 400.5f})
                                     .floats();
  const std::vector<float> want = {20, 20, 20, 20, 20, 27.5f};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-3f) << i;
}

TEST(GridSample, RefusesWhatItDoesNotKnow) {
  const auto sample = [](const Attributes& attributes) {
    return OneOperation("GridSample", attributes)
        .with<float>({1, 1, 2, 2}, {1, 2, 3, 4})
        .with<float>({1, 1, 1, 2}, {0, 0});
  };
  EXPECT_EQ(sample({}).refusal(), "");
  EXPECT_THAT(sample({{"mode", std::string("lanczos")}}).refusal(),
              HasSubstr("node 'output0_node' (GridSample): mode is 'lanczos', expected linear, nearest or cubic"));
  EXPECT_THAT(sample({{"padding_mode", std::string("wrap")}}).refusal(),
              HasSubstr("expected zeros, border or reflection"));
  EXPECT_THAT(sample({{"align_corners", 1.0f}}).refusal(), HasSubstr("'align_corners' should be an integer"));
}

TEST(GridSample, RefusesShapesThatDoNotFit) {
  const auto said = [](const dense::Shape& x, const dense::Shape& grid) {
    const auto zeros = [](const dense::Shape& s) {
      return std::vector<float>(static_cast<size_t>(dense::element_count(s)), 0.0f);
    };
    return OneOperation("GridSample").with<float>(x, zeros(x)).with<float>(grid, zeros(grid)).failure();
  };
  EXPECT_EQ(said({2, 3, 4, 5}, {2, 1, 1, 2}), "");
  EXPECT_EQ(said({2, 3, 4, 5}, {2, 0, 1, 2}), "");
  EXPECT_EQ(said({0, 3, 4, 5}, {0, 1, 1, 2}), "");
  for (const auto& [x, grid] :
       std::vector<std::pair<dense::Shape, dense::Shape>>{{{2, 3, 4, 5}, {1, 1, 1, 2}},
                                                          {{2, 3, 4, 5}, {2, 1, 1, 3}},
                                                          {{2, 3, 4, 5}, {2, 1, 2}},
                                                          {{2, 3}, {2, 0}},
                                                          {{}, {}},
                                                          {{1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 4}}})
    EXPECT_THAT(said(x, grid), HasSubstr("do not fit each other")) << dense::shape_text(x) << dense::shape_text(grid);
  EXPECT_THAT(said({1, 1, 0, 5}, {1, 1, 1, 2}), HasSubstr("have no pixels"));
}

}  // namespace
}  // namespace octet
