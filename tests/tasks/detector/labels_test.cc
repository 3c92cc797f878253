// Networks that end with their own suppression.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tasks/detector/decode.h"
#include "tasks/detector/task.h"

namespace octet::tasks::detector {
namespace {

using testing::HasSubstr;

// A network that suppresses by itself: one thing a row.
TEST(Detector, ReadsWhatIsSuppressedAlready) {
  const Options joined{.scores = {.first = 4}, .labels = {.value = 5}};
  const std::vector<float> rows = {5, 5, 20, 20, 0.9f, 1, 30, 5, 50, 20, 0.4f, 0, 0, 0, 10, 10, 0.8f, -1};
  const auto expect = [](const Objects& found) {
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].box, (vision::Box{5, 5, 20, 20}));
    EXPECT_EQ(found[0].label, 1);
    EXPECT_EQ(found[0].score, 0.9f);
    EXPECT_EQ(found[1].box, (vision::Box{30, 5, 50, 20}));
    EXPECT_EQ(found[1].label, 0);
    EXPECT_EQ(found[1].score, 0.4f);
  };
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1, 3, 6}, {3, 6}}) {
    const Outputs outputs = {{"out", shape, rows}};
    expect(Decoder(joined, shapes_of(outputs), 64, 96).propose(outputs, 0));
  }
  // torchvision's: no batch, labels from 1, which TensorFlow's may be, too, in shares of the image, y before x.
  const std::vector<float> boxes = {5, 5, 20, 20, 30, 5, 50, 20}, scores = {0.9f, 0.4f}, labels = {2, 1};
  Options apart{.boxes = {.outputs = {"boxes"}},
                .scores = {.outputs = {"scores"}},
                .labels = {.outputs = {"labels"}, .value = 0, .first = 1}};
  const Outputs flat = {{"boxes", {2, 4}, boxes}, {"scores", {2}, scores}, {"labels", {2}, labels}};
  expect(Decoder(apart, shapes_of(flat), 64, 96).propose(flat, 0));
  std::vector<float> shares;
  for (const size_t i : {1, 0, 3, 2, 5, 4, 7, 6}) shares.push_back(boxes[i] / (i % 2 == 0 ? 128.0f : 64.0f));
  apart.boxes.code = BoxCode::kCornersYx;
  apart.boxes.unit = Unit::kImage;
  const Outputs batched = {{"boxes", {1, 2, 4}, shares}, {"scores", {1, 2}, scores}, {"labels", {1, 2}, labels}};
  expect(Decoder(apart, shapes_of(batched), 64, 128).propose(batched, 0));
  apart.scores.classes = 1;
  EXPECT_THAT(
      [&] { Decoder(apart, shapes_of(batched), 64, 128).propose(batched, 0); },
      testing::ThrowsMessage<UserError>(HasSubstr("output 'labels' calls a thing 2; there are 1 classes, and the "
                                                  "label of the first is 1 (detector.labels.first)")));
  // Nothing found.
  const Outputs none = {{"boxes", {0, 4}, {}}, {"scores", {0}, {}}, {"labels", {0}, {}}};
  EXPECT_EQ(Decoder(apart, shapes_of(none), 64, 96).detect(none, 0).size(), 0u);
}

TEST(Detector, RecognizesOutputsThatOthersHave) {
  const auto port = [](const char* name, ir::Shape shape, ir::DataType type = ir::DataType::kFloat32) {
    return Port{name, {type, std::move(shape)}};
  };
  const Port image = port("images", {1, 3, 64, 96}), labels = port("4178", {-1}, ir::DataType::kInt64);
  const auto recognized = [&](std::vector<Port> outputs) {
    return Task(Options{}).recognize({.inputs = {image}, .outputs = std::move(outputs)});
  };
  EXPECT_TRUE(recognized({port("4208", {-1, 4}), labels, port("4177", {-1})}));
  EXPECT_FALSE(recognized({port("4208", {-1, 4}), port("4177", {-1})}));
  EXPECT_FALSE(recognized({port("4208", {-1, 5}), labels, port("4177", {-1})}));
  EXPECT_TRUE(recognized({port("detection_boxes", {1, 100, 4}), port("detection_scores", {1, 100}),
                          port("detection_classes", {1, 100}), port("num_detections", {1})}));
  EXPECT_FALSE(recognized({port("detection_boxes", {1, 100, 4}), port("detection_scores", {1, 100, 91}),
                           port("detection_classes", {1, 100})}));
}

}  // namespace
}  // namespace octet::tasks::detector
