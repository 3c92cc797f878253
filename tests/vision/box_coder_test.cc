#include "vision/box_coder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace octet::vision {
namespace {

void expect_box_near(const BoxCode& found, const BoxCode& expected, float tolerance) {
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << i;
}

void expect_box_near(const Box& found, const Box& expected, float tolerance) {
  expect_box_near(BoxCode{found.x0, found.y0, found.x1, found.y1},
                  BoxCode{expected.x0, expected.y0, expected.x1, expected.y1}, tolerance);
}

const Box kCodedBoxes[] = {{10, 20, 50, 80}, {3, 4, 9, 30}, {-7.5f, 2, 200, 2.25f}};
const Box kCodedAnchors[] = {{12, 16, 44, 90}, {0, 0, 16, 16}, {100, 100, 131, 107}};

TEST(CenterSizeCoder, SaysWhatTorchvisionSays) {
  // from torchvision.models.detection._utils import BoxCoder  (0.26); c = BoxCoder((10, 10, 5, 5))
  // c.encode_single(boxes, anchors), c.decode_single([[1, -2, .5, -.25], [0, 3, 30, 1]], anchors)
  const CenterSizeCoder coder = CenterSizeCoder::of_weights({10, 10, 5, 5});
  expect_box_near(coder.encode(kCodedBoxes[0], kCodedAnchors[0]), {0.625f, -0.4054054f, 1.1157178f, -1.0486027f},
                  2e-6f);
  expect_box_near(coder.encode(kCodedBoxes[1], kCodedAnchors[1]), {-1.25f, 5.625f, -4.9041462f, 2.4275391f}, 2e-6f);
  expect_box_near(coder.decode({1, -2, 0.5f, -0.25f}, kCodedAnchors[0]),
                  {13.517265f, 3.0045128f, 48.882736f, 73.395493f}, 1e-4f);
  expect_box_near(coder.decode({0, 3, 30, 1}, kCodedAnchors[1]), {-492, 3.0287781f, 508, 22.571222f}, 1e-4f);
}

TEST(CenterSizeCoder, VariancesDivideTheCode) {
  // By hand: the center moves by (3, -4) of (20, 40) pixels, the sides double and halve.
  const CenterSizeCoder coder{.variances = {0.1f, 0.1f, 0.2f, 0.2f}, .max_log_size = kUnlimited};
  const Box anchor{0, 0, 20, 40}, box{-7, 6, 33, 26};
  expect_box_near(coder.encode(box, anchor), {1.5f, -1, std::log(2.0f) / 0.2f, -std::log(2.0f) / 0.2f}, 1e-5f);
  expect_box_near(coder.decode({1.5f, -1, std::log(2.0f) / 0.2f, -std::log(2.0f) / 0.2f}, anchor), box, 1e-4f);
}

TEST(CenterSizeCoder, DecodesWhatItEncodes) {
  for (const Borders borders : {Borders::kExclusive, Borders::kInclusive}) {
    for (const Box& anchor : kCodedAnchors) {
      for (const Box& box : kCodedBoxes) {
        const CenterSizeCoder coder{.variances = {0.1f, 0.2f, 0.3f, 0.4f}, .borders = borders};
        // Rounding of centers of up to 200, and of a logarithm that is multiplied by up to 200.
        expect_box_near(coder.decode(coder.encode(box, anchor), anchor), box, 2e-4f);
      }
    }
  }
}

TEST(CenterSizeCoder, InclusiveBordersCountTheLastPixel) {
  // 10 x 20 pixels with the center (15, 30); 20 x 20 with (20, 30).
  const CenterSizeCoder coder{.borders = Borders::kInclusive};
  expect_box_near(coder.encode({10, 20, 29, 39}, {10, 20, 19, 39}), {0.5f, 0, std::log(2.0f), 0}, 1e-6f);
}

TEST(CenterSizeCoder, HugeSizesEndAtTheLimit) {
  const Box anchor{0, 0, 16, 16};
  EXPECT_NEAR(CenterSizeCoder{}.decode({0, 0, 50, 88}, anchor).width(), 1000, 1e-2f);
  EXPECT_NEAR(CenterSizeCoder{}.decode({0, 0, 50, 88}, anchor).height(), 1000, 1e-2f);
  EXPECT_NEAR(CenterSizeCoder{.max_log_size = kUnlimited}.decode({0, 0, 5, 0}, anchor).width(), 16 * std::exp(5.0f),
              1e-2f);
}

TEST(CenterSizeCoder, NeedsAWidth) {
  EXPECT_THROW(CenterSizeCoder{}.encode({3, 3, 3, 9}, kCodedAnchors[0]), InternalError);
  EXPECT_THROW(CenterSizeCoder{}.decode({}, {3, 3, 9, 3}), InternalError);
}

TEST(YoloCoder, LogitZeroIsThePriorInTheMiddleOfItsCell) {
  const Box prior{30, 10, 50, 70};
  for (const float scale : {1.0f, 1.2f})
    expect_box_near(YoloCoder{.xy_scale = scale}.decode({}, prior, {16, 16}), prior, 1e-5f);
}

TEST(YoloCoder, DecodesAsThePaperSays) {
  // Cell (2, 1) of 16 x 8 pixels, prior 20 x 60: b_x = (sigmoid(t_x) + 2) * 16, b_w = 20 e^t_w.
  const CellSize cell{16, 8};
  const Box prior{40 - 10, 12 - 30, 40 + 10, 12 + 30};
  const BoxCode t{1.5f, -2, 0.7f, -0.3f};
  const double x = (1 / (1 + std::exp(-1.5)) + 2) * 16, y = (1 / (1 + std::exp(2.0)) + 1) * 8;
  const double w = 20 * std::exp(0.7), h = 60 * std::exp(-0.3);
  const auto expected = [](double cx, double cy, double width, double height) {
    return Box{static_cast<float>(cx - width / 2), static_cast<float>(cy - height / 2),
               static_cast<float>(cx + width / 2), static_cast<float>(cy + height / 2)};
  };
  expect_box_near(YoloCoder{}.decode(t, prior, cell), expected(x, y, w, h), 1e-4f);
  // YOLOv4: 1.1 sigmoid - 0.05.
  const double x4 = (1.1 / (1 + std::exp(-1.5)) - 0.05 + 2) * 16, y4 = (1.1 / (1 + std::exp(2.0)) - 0.05 + 1) * 8;
  expect_box_near(YoloCoder{.xy_scale = 1.1f}.decode(t, prior, cell), expected(x4, y4, w, h), 1e-4f);
  EXPECT_NEAR((YoloCoder{.max_log_size = 2}.decode({0, 0, 9, 0}, prior, cell).width()), 20 * std::exp(2.0), 1e-4);
}

TEST(YoloCoder, EncodesWhatTheSigmoidIsToBe) {
  const Box prior{30, -18, 50, 42}, box{32, 10, 42, 16};  // center (37, 13) in a cell from (32, 8) to (48, 16)
  const BoxCode code = YoloCoder{}.encode(box, prior, {16, 8});
  expect_box_near(code, {5.0f / 16, 5.0f / 8, std::log(0.5f), std::log(0.1f)}, 1e-6f);
  // Back through the logit.
  const auto logit = [](float p) { return std::log(p / (1 - p)); };
  expect_box_near(YoloCoder{}.decode({logit(code[0]), logit(code[1]), code[2], code[3]}, prior, {16, 8}), box, 1e-4f);
}

TEST(YoloCoder, SizesEndAtTheRatio) {
  const Box prior{0, 0, 10, 10};
  const BoxCode code = YoloCoder{}.encode({0, 0, 5000, 0.01f}, prior, {16, 16});
  EXPECT_NEAR(code[2], std::log(100.0f), 1e-5f);
  EXPECT_NEAR(code[3], -std::log(100.0f), 1e-5f);
}

TEST(DistanceCoder, DistancesToTheFourBorders) {
  const DistanceCoder coder{.scale = 8};
  EXPECT_EQ(coder.encode({4, 10, 60, 50}, 20, 18), (BoxCode{2, 1, 5, 4}));
  EXPECT_EQ(coder.decode({2, 1, 5, 4}, 20, 18), (Box{4, 10, 60, 50}));
  EXPECT_LT(coder.encode({4, 10, 60, 50}, 2, 18)[0], 0);  // a point beside the box
}

}  // namespace
}  // namespace octet::vision
