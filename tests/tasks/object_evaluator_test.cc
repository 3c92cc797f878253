#include "tasks/object_evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "schema/tree.h"

namespace octet::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using vision::Object;

Object square(float x, float side, float score = 1, int label = 0) {
  return {.box = {x, 0, x + side, side}, .label = label, .score = score};
}

// Images of 400 x 100, fed to a network of 200 x 50: boxes in the image are twice as large.
data::Batch batch_of(std::vector<Objects> truth, int64_t first = 0) {
  data::Batch batch;
  batch.size = std::ssize(truth);
  for (Objects& objects : truth) {
    batch.truth.push_back({.objects = std::move(objects)});
    data::Geometry geometry = data::Geometry::whole(100, 400);
    geometry.height = geometry.resized_height = 50, geometry.width = geometry.resized_width = 200;
    batch.geometry.push_back(geometry);
    batch.indices.push_back(first + static_cast<int64_t>(batch.indices.size()));
  }
  return batch;
}

// An evaluator that is told what was found.
class Told {
 public:
  explicit Told(int64_t classes, const ObjectMetricOptions& options = {})
      : evaluator_(object_evaluator(
            [this, classes](const Outputs&, const data::Batch&) {
              return Detections{.images = found_, .classes = classes};
            },
            options)) {}
  void add(std::vector<Objects> found, std::vector<Objects> truth, int64_t first = 0) {
    found_ = std::move(found);
    evaluator_->add({}, batch_of(std::move(truth), first));
  }
  double map() const { return evaluator_->result().at("map"); }
  Details details() const { return evaluator_->details(); }

 private:
  std::vector<Objects> found_;
  std::unique_ptr<Evaluator> evaluator_;
};

double figure(const Details& details, const std::string& name) {
  for (const Figure& each : details.figures)
    if (each.info.name == name) return each.value;
  ADD_FAILURE() << name;
  return -1;
}

TEST(ObjectEvaluator, NothingHasNoDetails) {
  const Told told(1);
  EXPECT_THAT(told.details().classes, IsEmpty());
  EXPECT_EQ(told.map(), 0);
}

// 20 x 20 pixels of the network are 40 x 40 of the image: a medium object to COCO.
TEST(ObjectEvaluator, SizesAreThoseOfTheImage) {
  Told told(1);
  told.add({{square(0, 20, 0.9f)}}, {{square(0, 20)}});
  const Details details = told.details();
  EXPECT_NEAR(figure(details, "coco_ap"), 100, 1e-9);
  EXPECT_NEAR(figure(details, "coco_ap_medium"), 100, 1e-9);
  EXPECT_TRUE(std::isnan(figure(details, "coco_ap_small")));
  EXPECT_EQ(details.figures.size(), 12u);
}

TEST(ObjectEvaluator, ClassesHaveARowEachAtTheirBestScore) {
  Told told(3);
  // Class 0: right, right, wrong at 0.9, 0.6, 0.3; one of three is never found. Class 1: only wrong ones.
  told.add({{square(0, 20, 0.9f), square(50, 20, 0.6f), square(150, 20, 0.3f), square(100, 20, 0.5f, 1)}},
           {{square(0, 20), square(50, 20), square(100, 20), square(0, 20, 1, 1)}});
  const Details details = told.details();
  ASSERT_THAT(details.classes, SizeIs(3));
  ASSERT_EQ(details.columns[0].name, "ap");
  EXPECT_NEAR(details.classes[0][0], 100.0 * 2 / 3, 1e-9);
  EXPECT_EQ(details.classes[0][1], 3);
  EXPECT_NEAR(details.classes[0][2], 100, 1e-9);            // precision
  EXPECT_NEAR(details.classes[0][3], 100.0 * 2 / 3, 1e-9);  // recall
  EXPECT_FLOAT_EQ(static_cast<float>(details.classes[0][4]), 0.6f);
  EXPECT_EQ(details.classes[1][0], 0);
  EXPECT_TRUE(std::isnan(details.classes[1][2]));
  EXPECT_TRUE(std::isnan(details.classes[2][0]));
  EXPECT_EQ(details.classes[2][1], 0);
  for (const std::vector<double>& row : details.classes) EXPECT_EQ(row.size(), details.columns.size());
}

TEST(ObjectEvaluator, CurvesArePrecisionOverRecall) {
  Told told(2);
  told.add({{square(0, 20, 0.9f), square(150, 20, 0.6f), square(50, 20, 0.3f)}}, {{square(0, 20), square(50, 20)}});
  const Details details = told.details();
  ASSERT_THAT(details.curves, SizeIs(1));
  ASSERT_THAT(details.curves[0].lines, SizeIs(1));
  EXPECT_THAT(details.curves[0].lines[0].x, ElementsAre(0.5, 0.5, 1));
  EXPECT_THAT(details.curves[0].lines[0].y, ElementsAre(1, 0.5, 2.0 / 3));
}

TEST(ObjectEvaluator, LongCurvesKeepTheirEnds) {
  Told told(1);
  Objects found;
  for (int i = 0; i < 1000; ++i) found.push_back(square(0, 20, 1 - static_cast<float>(i) / 1024));
  told.add({found}, {{square(0, 20)}});
  const CurveLine line = told.details().curves.at(0).lines.at(0);
  EXPECT_EQ(line.x.size(), 200u);
  EXPECT_EQ(line.y.front(), 1);
  EXPECT_DOUBLE_EQ(line.y.back(), 0.001);
}

TEST(ObjectEvaluator, TheWorstImagesComeFirstWithTheirFaults) {
  Told told(1);
  told.add({{square(0, 20, 0.9f)}, {square(0, 20, 0.9f), square(100, 20, 0.95f)}},
           {{square(0, 20)}, {square(0, 20), square(50, 20)}}, 10);
  told.add({{square(0, 20, 0.9f), square(150, 20, 0.01f)}, {square(0, 20, 0.9f)}},
           {{square(0, 20)}, {square(0, 20), square(50, 20)}}, 12);
  const std::vector<ImageRemark> worst = told.details().worst;
  ASSERT_THAT(worst, SizeIs(2));  // the detection of 0.01 is below the best score
  EXPECT_EQ(worst[0].image, 11);
  EXPECT_EQ(worst[0].text, "1 missed, 1 wrong");
  EXPECT_EQ(worst[1].image, 13);
  EXPECT_EQ(worst[1].text, "1 missed, 0 wrong");
  ASSERT_THAT(worst[0].marks, SizeIs(3));
  EXPECT_EQ(worst[0].marks[0].outcome, Outcome::kRight);
  EXPECT_EQ(worst[0].marks[1].outcome, Outcome::kWrong);
  EXPECT_EQ(worst[0].marks[1].object.box, (vision::Box{200, 0, 240, 40}));  // in the image
  EXPECT_EQ(worst[0].marks[2].outcome, Outcome::kMissed);
}

ObjectMetricOptions parsed(const std::string& yaml) {
  ObjectMetricOptions options;
  schema::Section section;
  describe_object_metrics(section, options);
  schema::read_section(section, schema::parse_yaml(yaml, "spec.yaml"), "", {});
  return options;
}

TEST(ObjectMetrics, AreGivenByClass) {
  ObjectMetricOptions options = parsed(
      "evaluation:\n"
      "  minimum_detection_ground_truth_overlap: 0.6\n"
      "  evaluation_box_config: {minimum_height: 10}\n"
      "  average_precision_mode: sample\n"
      "  target_class_config:\n"
      "    person: {minimum_detection_ground_truth_overlap: 0.4, evaluation_box_config: {maximum_width: 30}}\n");
  options.matching.resolve({"car", "person"}, "key");
  const metrics::AveragePrecisionOptions out = average_precision_options(options, 2);
  EXPECT_EQ(out.interpolation, metrics::Interpolation::kElevenPoint);
  EXPECT_FLOAT_EQ(out.matching[0].iou_threshold, 0.6f);
  EXPECT_EQ(out.matching[0].limits.minimum_height, 10);
  EXPECT_EQ(out.matching[0].limits.maximum_width, 1e6);
  EXPECT_FLOAT_EQ(out.matching[1].iou_threshold, 0.4f);
  EXPECT_EQ(out.matching[1].limits.minimum_height, 10);  // from above
  EXPECT_EQ(out.matching[1].limits.maximum_width, 30);
}

TEST(ObjectMetrics, TaosWayIsOneKey) {
  const metrics::AveragePrecisionOptions tao =
                                             average_precision_options(parsed("evaluation: {tao_compatible: true}"), 1),
                                         own = average_precision_options({}, 1);
  EXPECT_EQ(tao.interpolation, metrics::Interpolation::kTaoEnvelope);
  EXPECT_EQ(tao.borders, vision::Borders::kInclusive);
  EXPECT_TRUE(tao.whole_pixels && tao.discard_outside && tao.mean_of_all);
  EXPECT_EQ(own.interpolation, metrics::Interpolation::kEnvelope);
  EXPECT_EQ(own.borders, vision::Borders::kExclusive);
  EXPECT_FALSE(own.whole_pixels || own.discard_outside || own.mean_of_all);
  EXPECT_EQ(average_precision_options(parsed("evaluation: {tao_compatible: true, average_precision_mode: sample}"), 1)
                .interpolation,
            metrics::Interpolation::kElevenPoint);
}

TEST(ObjectMetrics, LimitsTheWrongWayRoundAreRefused) {
  try {
    parsed("evaluation: {evaluation_box_config: {minimum_height: 30, maximum_height: 20}}");
    FAIL() << "taken";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("maximum_height"));
  }
}

// A perfect detector of five objects, as both measure it.
TEST(ObjectMetrics, APerfectDetectorMissesAnObjectInTaosIntegral) {
  for (const bool tao : {false, true}) {
    Told told(1, {.tao_compatible = tao});
    Objects objects;
    for (int i = 0; i < 5; ++i) objects.push_back(square(40.0f * static_cast<float>(i), 20));
    told.add({objects}, {objects});
    EXPECT_NEAR(told.map(), tao ? 80 : 100, 1e-9);
  }
}

}  // namespace
}  // namespace octet::tasks
