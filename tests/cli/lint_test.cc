// octet lint, and the placements that quantize and calibrate have by --rules, through the program.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/network_files.h"
#include "ir/query.h"
#include "onnx/import.h"

namespace octet::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Lint : public NetworkFiles {
 protected:
  void SetUp() override {
    NetworkFiles::SetUp();
    if (IsSkipped()) return;
    write_images(32);
    expect(0, "models resnet20 -o m.onnx --num_classes 3");
  }
  void quantize(const std::string& more, const std::string& to) const {
    expect(0, "quantize -m m.onnx --images data -o " + to + " " + more);
  }
};

TEST_F(Lint, ShowsATableAndOneRuntime) {
  quantize("", "q.onnx");
  const Outcome table = octet("lint q.onnx");
  EXPECT_EQ(table.code, 0) << table.err;
  for (const char* runtime : {"Octet's engine", "TensorRT 8.6", "TensorRT 11.0", "DLA", "OpenVINO", "ONNX Runtime"})
    EXPECT_THAT(table.out, HasSubstr(runtime));
  EXPECT_THAT(table.out, ::testing::ContainsRegex("TensorRT 11.0 +taken +22 of 22"));
  EXPECT_THAT(octet("lint -m q.onnx --target engine").out, HasSubstr("takes the file; 22 of 22 convolutions"));
}

TEST_F(Lint, ExitCodesAreThoseOfOtherCommands) {
  quantize("--asymmetric", "q.onnx");
  expect(0, "lint q.onnx");
  expect(0, "lint q.onnx --target engine --target openvino");
  const Outcome refused = octet("lint q.onnx --target tensorrt:10.3 --json -");
  EXPECT_EQ(refused.code, 3);
  const auto json = nlohmann::json::parse(refused.out);
  EXPECT_EQ(json["targets"][0]["taken"], false);
  EXPECT_THAT(json["targets"][0]["findings"][0]["message"].get<std::string>(), HasSubstr("TensorRT takes 0 alone"));
  expect(2, "lint q.onnx --target tensort");
  expect(2, "lint nothing.onnx");
  expect(0, "compile q.onnx -o q.octet");
  EXPECT_THAT(octet("lint q.octet").err, HasSubstr("is an engine, which octet inspect shows"));
}

TEST_F(Lint, RulesGiveEveryTensorOfADlaARange) {
  quantize("--rules dla", "q.onnx");
  const Outcome dla = octet("lint q.onnx --target dla");
  EXPECT_THAT(dla.out, AllOf(HasSubstr("22 of 22 convolutions"), ::testing::Not(HasSubstr("has no range"))));
  // The same by the spec and by the flag of calibrate.
  expect(0, "calibrate -e spec.yaml -m m.onnx -o a.onnx --rules dla");
  expect(0, "calibrate -e spec.yaml -m m.onnx -o b.onnx --set quant.rules=[dla]");
  const ir::Graph a = onnx::import_model(folder_ + "/a.onnx"), b = onnx::import_model(folder_ + "/b.onnx");
  EXPECT_EQ(a.nodes().size(), b.nodes().size());
  EXPECT_TRUE(ir::is_quantizer(a.outputs()[0]->producer));
  EXPECT_THAT(octet("quantize -m m.onnx --images data -o c.onnx --rules dlb").err, HasSubstr("did you mean 'dla'?"));
}

TEST_F(Lint, SettingsOfLayersComeFromTheSpec) {
  expect(0, "calibrate -e spec.yaml -m m.onnx -o q.onnx --set \"quant.layers=[{name: conv1, weight_bits: 4}]\"");
  const ir::Graph graph = onnx::import_model(folder_ + "/q.onnx");
  const ir::Node* conv = graph.find_node("conv1");
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(conv->input(1)->producer->get_int("qmax"), 7);
  EXPECT_EQ(conv->input(0)->producer->get_int("qmax"), 127);
  EXPECT_THAT(
      octet("calibrate -e spec.yaml -m m.onnx -o r.onnx --set \"quant.layers=[{name: conv9, method: max}]\"").err,
      HasSubstr("quantization layers: no node of graph"));
  EXPECT_THAT(octet("calibrate -e spec.yaml -m m.onnx -o r.onnx --set \"quant.layers=[{name: conv1}]\"").err,
              HasSubstr("says nothing about these layers"));
}

}  // namespace
}  // namespace octet::test
