#include "app/deepstream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "base/error.h"
#include "spec/experiment.h"

namespace octet::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// "section/key" -> value, as an INI reader has it.
std::map<std::string, std::string> keys_of(const std::string& config) {
  std::map<std::string, std::string> out;
  std::istringstream lines(config);
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      section = line.substr(1, line.size() - 2);
      continue;
    }
    const size_t equals = line.find('=');
    EXPECT_NE(equals, std::string::npos) << line;
    EXPECT_TRUE(out.emplace(section + "/" + line.substr(0, equals), line.substr(equals + 1)).second) << line;
  }
  return out;
}

tasks::Port port(const std::string& name, ir::Shape shape) {
  return {name, {ir::DataType::kFloat32, std::move(shape)}};
}

class DeepStream : public ::testing::Test {
 protected:
  spec::ExperimentSpec spec(const std::string& text) { return spec::parse_experiment(text, "spec", {}); }

  DeepStreamModel classifier_{.onnx = "out/model.onnx",
                              .cache = {},
                              .precision = NvinferPrecision::kFp32,
                              .batch = 4,
                              .signature = {{port("x", {-1, 3, 224, 320})}, {port("probabilities", {-1, 3})}},
                              .class_names = {"cat", "dog", "a bird"},
                              .transform = {.height = 224, .width = 320, .mode = data::ResizeMode::kStretch}};
};

TEST_F(DeepStream, AClassifier) {
  classifier_.transform.mean = {0.485, 0.456, 0.406};
  classifier_.transform.std = {0.226};
  const DeepStreamFiles files = deepstream_files(classifier_, *spec("").task, "out");
  auto keys = keys_of(files.config);
  EXPECT_EQ(keys["property/onnx-file"], "model.onnx");
  EXPECT_EQ(keys["property/model-engine-file"], "model.onnx_b4_gpu0_fp32.engine");
  EXPECT_EQ(keys["property/infer-dims"], "3;224;320");
  EXPECT_EQ(keys["property/batch-size"], "4");
  EXPECT_EQ(keys["property/network-mode"], "0");
  EXPECT_EQ(keys["property/network-type"], "1");
  EXPECT_EQ(keys["property/model-color-format"], "0");
  EXPECT_EQ(keys["property/output-blob-names"], "probabilities");
  EXPECT_EQ(keys.count("property/int8-calib-file"), 0u);
  // nvinfer's formula gives the number that the network was trained with.
  const double scale = std::stod(keys["property/net-scale-factor"]);
  const double offset = std::stod(keys["property/offsets"]);
  EXPECT_NEAR(scale * (200 - offset), (200.0 / 255 - 0.485) / 0.226, 1e-8);
  EXPECT_EQ(keys["property/offsets"], "123.675;116.28;103.53");
  EXPECT_EQ(files.labels, "cat;dog;a bird\n");
}

TEST_F(DeepStream, ADetectorOfTheSmallestKind) {
  const DeepStreamModel model{
      .onnx = "out/model.clean.onnx",
      .cache = "out/cal/cal.bin",
      .precision = NvinferPrecision::kInt8,
      .batch = 1,
      .signature = {{port("x", {1, 1, 96, 128})},
                    {port("output_cov/Sigmoid", {1, 2, 6, 8}), port("output_bbox/BiasAdd", {1, 8, 6, 8})}},
      .class_names = {"shoe"},
      .transform = {.height = 96, .width = 128, .mode = data::ResizeMode::kStretch}};
  const spec::ExperimentSpec experiment = spec(
      "task: detectnet_v2\n"
      "detectnet_v2: {postprocessing: {coverage_threshold: 0.02, dbscan_eps: 0.25, dbscan_min_samples: 1.5,\n"
      "  dbscan_confidence_threshold: 0.9, minimum_bounding_box_height: 3.5}}\n");
  const DeepStreamFiles files = deepstream_files(model, *experiment.task, "out");
  auto keys = keys_of(files.config);
  EXPECT_EQ(keys["property/network-type"], "0");
  EXPECT_EQ(keys["property/num-detected-classes"], "2");
  EXPECT_EQ(keys["property/network-mode"], "1");
  EXPECT_EQ(keys["property/int8-calib-file"], "cal/cal.bin");
  EXPECT_EQ(keys["property/model-color-format"], "2");
  EXPECT_EQ(keys["property/output-blob-names"], "output_cov/Sigmoid;output_bbox/BiasAdd");
  EXPECT_EQ(keys["property/cluster-mode"], "1");
  EXPECT_NEAR(std::stod(keys["property/net-scale-factor"]), 1.0 / 255, 1e-12);
  EXPECT_EQ(keys["class-attrs-all/pre-cluster-threshold"], "0.02");
  EXPECT_EQ(keys["class-attrs-all/eps"], "0.25");
  EXPECT_EQ(keys["class-attrs-all/minBoxes"], "1");
  EXPECT_EQ(keys["class-attrs-all/dbscan-min-score"], "0.9");
  EXPECT_EQ(keys["class-attrs-all/detected-min-h"], "4");
  EXPECT_EQ(files.labels, "shoe\n1\n");  // a class without a name is called by its number, as everywhere
}

TEST_F(DeepStream, InTheWorkingFolder) {
  classifier_.onnx = "model.onnx";
  EXPECT_EQ(keys_of(deepstream_files(classifier_, *spec("").task, "").config)["property/onnx-file"], "model.onnx");
}

TEST_F(DeepStream, WhatNvinferCannotDoIsSaid) {
  classifier_.transform.std = {0.229, 0.224, 0.225};
  classifier_.transform.mode = data::ResizeMode::kCenterCrop;
  const DeepStreamFiles files = deepstream_files(classifier_, *spec("").task, "out");
  EXPECT_THAT(files.config,
              AllOf(HasSubstr("# Mind: nvinfer scales all channels alike"), HasSubstr("off by up to 1.3 %"),
                    HasSubstr("# Mind: the experiment cuts the input from the middle")));
  EXPECT_EQ(files.warnings.size(), 3u);
  classifier_.transform.mode = data::ResizeMode::kStretch;
  classifier_.transform.central_fraction = 0.875;
  classifier_.transform.order = data::ChannelOrder::kBgr;
  EXPECT_THAT(deepstream_files(classifier_, *spec("").task, "out").config,
              AllOf(HasSubstr("# Mind: the experiment takes the middle of the image (data.central_fraction)"),
                    HasSubstr("model-color-format=1\n")));
  classifier_.transform.std = {0.2, 0.25, 0.3};
  EXPECT_THAT(([&] { deepstream_files(classifier_, *spec("").task, "out"); }),
              ThrowsMessage<UserError>(HasSubstr("data.std differs by 20.0 %")));
  classifier_.transform.std = {0.5};
  classifier_.class_names[1] = "dog;wolf";
  EXPECT_THAT(([&] { deepstream_files(classifier_, *spec("").task, "out"); }),
              ThrowsMessage<UserError>(HasSubstr("the class 'dog;wolf' cannot stand in labels.txt")));
}

}  // namespace
}  // namespace octet::app
