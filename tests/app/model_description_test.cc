#include "app/model_description.h"

#include <gmock/gmock.h>

#include "app/experiment_data.h"
#include "engine/model_info.h"

namespace octet::app {
namespace {

namespace key = engine::key;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ModelFacts network(int64_t channels, int64_t height, int64_t width) {
  return {.path = "m.onnx",
          .metadata = {},
          .signature = {.inputs = {{"x", {ir::DataType::kFloat32, ir::Shape{1, channels, height, width}}}},
                        .outputs = {{"y", {ir::DataType::kFloat32, ir::Shape{1, 10}}}}}};
}

spec::ExperimentSpec experiment(const std::string& yaml) {
  return spec::parse_experiment(yaml, "spec.yaml", {.check_files = false});
}

// A model that carries what `yaml` says is fed and read as `yaml` says.
void expect_round_trip(const std::string& yaml, ModelFacts model) {
  const spec::ExperimentSpec given = experiment(yaml);
  keep_description(model.metadata, given, model.signature);
  const spec::ExperimentSpec carried = experiment_of(model);
  EXPECT_EQ(description_of(carried, model.signature), model.metadata) << yaml;
  EXPECT_THAT(contradictions(model, given), IsEmpty()) << yaml;
  const data::TransformOptions a = evaluation_loader_options(given).transform,
                               b = evaluation_loader_options(carried).transform;
  EXPECT_EQ(a.mode, b.mode) << yaml;
  if (a.mode == data::ResizeMode::kCenterCrop) {
    EXPECT_EQ(data::shorter_side(a), data::shorter_side(b)) << yaml;
  }
  EXPECT_EQ(a.interpolation, b.interpolation) << yaml;
  EXPECT_EQ(a.central_fraction, b.central_fraction) << yaml;
  EXPECT_EQ(a.order, b.order) << yaml;
  EXPECT_EQ(a.tao_compatible, b.tao_compatible) << yaml;
  EXPECT_EQ(a.preprocessing.has_value(), b.preprocessing.has_value()) << yaml;
  EXPECT_EQ(std::make_pair(a.height, a.width), std::make_pair(b.height, b.width)) << yaml;
  EXPECT_EQ(given.data.exif_orientation, carried.data.exif_orientation) << yaml;
  EXPECT_EQ(given.task.name(), carried.task.name()) << yaml;
}

TEST(ModelDescription, SaysTheExperimentAgain) {
  const std::string color = "model: {input: [3, 96, 128]}\n";
  expect_round_trip(color, network(3, 96, 128));
  expect_round_trip(color + "data: {preset: torchvision}\n", network(3, 96, 128));
  expect_round_trip(color + "data: {preset: keras_caffe, exif_orientation: true}\n", network(3, 96, 128));
  expect_round_trip(color + "data: {preset: tf_slim_inception}\n", network(3, 96, 128));
  expect_round_trip(color + "data: {mean: [0.1], std: [0.3], augment: {random_resized_crop: true}}\n",
                    network(3, 96, 128));
  expect_round_trip(color +
                        "data: {preprocessing: {crop_left: 3, crop_top: 1, crop_right: 50, crop_bottom: 60}, "
                        "augment: {tao_compatible: true}}\n",
                    network(3, 96, 128));
  expect_round_trip("model: {input: [1, 28, 28]}\ndata: {mean: [0.1307], std: [0.3081]}\n", network(1, 28, 28));
  expect_round_trip(color +
                        "task: detectnet_v2\ndetectnet_v2: {postprocessing: {clustering_algorithm: nms, "
                        "nms_iou_threshold: 0.3, target_class_config: {car: {coverage_threshold: 0.25}}}}\n",
                    network(3, 96, 128));
  expect_round_trip(color +
                        "task: detector\ndetector: {boxes: {layout: columns, code: center}, scores: {layout: columns, "
                        "first: 4}, levels: [{stride: 8, shapes: [10, 13]}]}\n",
                    network(3, 96, 128));
}

// Other programs read it as plain JSON.
TEST(ModelDescription, IsPlainJson) {
  const ModelFacts model = network(3, 224, 224);
  const Metadata made = description_of(
      experiment(
          "data: {preset: torchvision}\ntask: detectnet_v2\ndetectnet_v2: {postprocessing: {dbscan_eps: 0.2}}\n"),
      model.signature);
  EXPECT_EQ(made.at(key::kTask), "detectnet_v2");
  EXPECT_EQ(made.at(key::kMean), "[0.485,0.456,0.406]");
  EXPECT_EQ(made.at(key::kColorOrder), "rgb");
  EXPECT_EQ(made.at(key::kLayout), "NCHW");
  EXPECT_EQ(made.at(key::kResize), R"({"mode":"center_crop","shorter_side":256,"interpolation":"antialias"})");
  EXPECT_THAT(made.at(key::kDecoder), AllOf(HasSubstr(R"({"postprocessing":{)"), HasSubstr(R"("dbscan_eps":0.2)"),
                                            HasSubstr(R"("clustering_algorithm":"dbscan")")));
}

TEST(ModelDescription, ContradictionsNameBothValues) {
  ModelFacts model = network(3, 224, 224);
  keep_description(model.metadata, experiment("data: {preset: torchvision}\n"), model.signature);
  EXPECT_THAT(contradictions(model, experiment("data: {preset: torchvision, mean: [0.5]}\n")),
              ElementsAre("data.mean is [0.5,0.5,0.5], in the model [0.485,0.456,0.406]"));
  EXPECT_THAT(contradictions(model, experiment("data: {preset: torchvision, resize: 232}\n")),
              ElementsAre("resize.shorter_side is 232, in the model 256"));
  EXPECT_THAT(contradictions(model, experiment("task: detectnet_v2\n")),
              Contains(R"(task is "detectnet_v2", in the model "classification")"));
  // What the model does not carry, nothing contradicts.
  model.metadata = {{key::kMean, "[0.5]"}};
  EXPECT_THAT(contradictions(model, experiment("data: {mean: [0.5], std: [0.1], resize: 300}\n")), IsEmpty());
}

TEST(ModelDescription, WhatNoExperimentCanSayIsRefused) {
  const auto message = [](const Metadata& metadata) -> std::string {
    ModelFacts model = network(3, 224, 224);
    model.metadata = metadata;
    try {
      experiment_of(model);
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(message({{key::kResize, R"({"mode": "letterbox"})"}}),
              AllOf(HasSubstr("m.onnx"), HasSubstr("letterbox")));
  EXPECT_THAT(message({{key::kResize, R"({"mode": "tao", "preprocessing": {"crop_up": 1}})"}}), HasSubstr("crop_up"));
  EXPECT_THAT(message({{key::kMean, "[1, 2]"}, {key::kStd, "[1]"}}), HasSubstr("data.mean"));
  EXPECT_THAT(message({{key::kTask, "juggling"}}), HasSubstr("juggling"));
  EXPECT_THAT(message({{key::kTask, "detectnet_v2"}, {key::kDecoder, R"({"postprocessing": {"dbscan_eps": 7}})"}}),
              HasSubstr("dbscan_eps"));
}

}  // namespace
}  // namespace octet::app
