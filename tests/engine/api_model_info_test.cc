// What an engine says of its model: Octet's metadata and that of other programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <octet/engine.h>

#include <map>
#include <string>

#include "engine/engine_file.h"
#include "engine/engine_test_util.h"

namespace octet::testing {
namespace {

using ::testing::HasSubstr;

// What the small plan is with these entries.
Engine with(const std::map<std::string, std::string>& metadata) {
  engine::Plan plan = small_plan();
  plan.metadata = metadata;
  const std::string bytes = engine::engine_file_bytes(plan);
  return Engine::from_memory(bytes.data(), bytes.size());
}

TEST(ApiModelInfo, TellsWhatTheModelCarries) {
  const Engine engine = with({{"octet.task", "detectnet_v2"},
                              {"octet.classes", R"(["cat", "d\u00f6g", "a, \"b\"\n"])"},
                              {"octet.input.mean", "[0.5]"},
                              {"octet.input.std", "[0.25]"},
                              {"octet.input.resize", R"({"mode": "stretch", "central_fraction": 0.875})"},
                              {"octet.input.exif_orientation", "true"},
                              {"octet.decoder", R"({"postprocessing": {"dbscan_eps": 0.2}})"},
                              {"stage", "qat"}});
  EXPECT_EQ(engine.metadata().at("stage"), "qat");
  const ModelInfo info = engine.model_info();
  EXPECT_EQ(info.task, "detectnet_v2");
  EXPECT_EQ(info.classes, (std::vector<std::string>{"cat", "d\xC3\xB6g", "a, \"b\"\n"}));
  EXPECT_EQ(info.mean, std::vector<double>{0.5});
  EXPECT_EQ(info.resize, "stretch");
  EXPECT_EQ(info.central_fraction, 0.875);
  EXPECT_TRUE(info.exif_orientation);
  EXPECT_THAT(info.decoder, HasSubstr("dbscan_eps"));
  // Pixels with the format are the normalized image, but for the last bits.
  const ImageFormat format = engine.image_format();
  for (const int x : {0, 17, 255})
    EXPECT_NEAR(static_cast<float>(x) * format.scale[1] + format.offset[1], (x / 255.0 - 0.5) / 0.25, 1e-6);
  // The names that files had before.
  EXPECT_EQ(with({{"octet.class_names", "one\ntwo\\\\three\n"}}).model_info().classes,
            (std::vector<std::string>{"one", "two\\three"}));
  EXPECT_EQ(with({}).model_info().classes.size(), 0u);
}

// Other programs' entries count where there are none of Octet's.
TEST(ApiModelInfo, ReadsWhatOtherProgramsWrite) {
  const std::map<std::string, std::string> ultralytics = {{"names", R"({0: 'cat', 1: "dog's", 2: 'h\xf6hle'})"},
                                                          {"stride", "1"},
                                                          {"task", "classify"},
                                                          {"imgsz", "[224, 224]"}};
  const ModelInfo classifier = with(ultralytics).model_info();
  EXPECT_EQ(classifier.classes, (std::vector<std::string>{"cat", "dog's", "h\xC3\xB6hle"}));
  EXPECT_EQ(classifier.task, "classification");
  EXPECT_EQ(classifier.resize, "center_crop");
  EXPECT_EQ(classifier.shorter_side, 224);
  EXPECT_EQ(classifier.std, std::vector<double>{1});
  std::map<std::string, std::string> both = ultralytics;
  both["octet.classes"] = R"(["x"])";
  EXPECT_EQ(with(both).model_info().classes, std::vector<std::string>{"x"});
  std::map<std::string, std::string> detector = ultralytics;
  detector["task"] = "detect";
  EXPECT_EQ(with(detector).model_info().task, "detector");
  EXPECT_EQ(with(detector).model_info().resize, "");
  EXPECT_EQ(with(detector).model_info().decoder.find("labels"), std::string::npos);
  detector["end2end"] = "True";
  EXPECT_NE(with(detector).model_info().decoder.find(R"("labels": {"value": 5})"), std::string::npos);
  const ModelInfo onnx =
      with({{"Image.BitmapPixelFormat", "Bgr8"}, {"Image.NominalPixelRange", "NominalRange_0_255"}}).model_info();
  EXPECT_EQ(onnx.color_order, "bgr");
  EXPECT_EQ(static_cast<float>(onnx.std.at(0)), 1 / 255.0f);
  for (const char* const other : {"{0: 'a', 2: 'b'}", "{'a': 0}", "['a', 3]", "['a'", "['a'] x", "{0: 'a', 0: 'b'}",
                                  R"(['\ud800'])", "somebody", ""})
    EXPECT_TRUE(with({{"names", other}}).model_info().classes.empty()) << other;
}

TEST(ApiModelInfo, MalformedEntriesAreNamed) {
  for (const auto& [key, value] : std::map<std::string, std::string>{{"octet.classes", "[1, 2]"},
                                                                     {"octet.input.mean", "[0.5, \"a\"]"},
                                                                     {"octet.input.std", "[0]"},
                                                                     {"octet.input.color_order", "brg"},
                                                                     {"octet.input.layout", "CHWN"},
                                                                     {"octet.input.resize", R"({"shorter_side": -3})"},
                                                                     {"octet.input.exif_orientation", "1"},
                                                                     {"octet.decoder", std::string(1000, '[')},
                                                                     {"octet.task", ""}}) {
    const Engine engine = with({{key, value}});  // loads: the network runs without them
    std::string message;
    try {
      engine.model_info();
    } catch (const Error& e) {
      message = e.what();
    }
    EXPECT_THAT(message, HasSubstr("'" + key + "'"));
  }
  EXPECT_THROW(with({}).image_format(), Error);
  EXPECT_THROW(with({{"octet.input.mean", "[1, 2]"}, {"octet.input.std", "[1]"}}).image_format(), Error);
}

}  // namespace
}  // namespace octet::testing
