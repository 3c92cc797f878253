// Quantization by the program: budgets of the search, the mode of batch norms in stage qat, an average of peaks.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/network_files.h"
#include "ir/print.h"
#include "ir/query.h"
#include "onnx/import.h"

namespace octet::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Quantization : public NetworkFiles {
 protected:
  void SetUp() override {
    NetworkFiles::SetUp();
    if (IsSkipped()) return;
    write_images(32);
    expect(0, "models resnet20 -o m.onnx --num_classes 3");
  }
  int64_t count(const std::string& model, ir::OpKind kind) const {
    const ir::Graph graph = onnx::import_model(folder_ + "/" + model);
    return std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const auto& n) { return n->kind == kind; });
  }
};

TEST_F(Quantization, ABudgetThatHoldsLeavesASpecThatMakesTheSameFile) {
  const Outcome fits =
      octet("quantize -m m.onnx --images data -o q.onnx --accuracy-drop 100 --size-budget 0.5 --json s.json");
  ASSERT_EQ(fits.code, 0) << fits.err;
  EXPECT_THAT(fits.out, AllOf(HasSubstr("MiB"), HasSubstr("calibrated")));
  const auto json = nlohmann::json::parse(read("s.json"));
  EXPECT_LT(json["bytes"], json["float_bytes"]);
  // Metadata come on top.
  EXPECT_NEAR(json["bytes"].get<double>(), static_cast<double>(std::filesystem::file_size(folder_ + "/q.onnx")), 1024);
  expect(0, "quantize -e q.spec.yaml -m m.onnx --images data -o again.onnx");
  const auto text = [&](const std::string& file) {
    ir::Graph graph = onnx::import_model(folder_ + "/" + file);
    graph.metadata.clear();  // of which some say that there was a spec
    return ir::to_text(graph);
  };
  EXPECT_TRUE(text("again.onnx") == text("q.onnx")) << "another network";
}

TEST_F(Quantization, ABudgetThatDoesNotHoldFailsAtOnce) {
  for (const char* bound : {"--latency-budget 0.00001", "--size-budget 0.01"}) {
    const Outcome over = octet(std::string("quantize -m m.onnx --images data -o q.onnx ") + bound);
    EXPECT_EQ(over.code, 3) << bound << over.err;
    EXPECT_THAT(over.err, AllOf(HasSubstr("the best that was found"), HasSubstr("nothing was written")));
    EXPECT_FALSE(exists("q.onnx"));
  }
  EXPECT_THAT(
      octet("quantize -m m.onnx --images data -o q.onnx --validation data").err,
      HasSubstr("--validation says what --accuracy-drop, --latency-budget, --size-budget and --best-method judge by"));
}

TEST_F(Quantization, BatchNormsTrainOnInQatAndAreFoldedAtItsEnd) {
  const std::string run = "train -e spec.yaml --set finetune.epochs=1 --set train.precision=fp32 ";
  expect(0, run + "-r qat --stage qat -m m.onnx --set quant.qat_mode=with_bn");
  EXPECT_EQ(count("qat/calibrated.onnx", ir::OpKind::kBatchNormalization), 19 + 2);
  EXPECT_EQ(count("qat/model.onnx", ir::OpKind::kBatchNormalization), 0);
  expect(0, "compile qat/model.onnx -o qat.octet");
  expect(0, "verify -e spec.yaml -m qat/model.onnx --engine_file qat.octet");
  EXPECT_THAT(octet("lint qat/model.onnx --target engine").out,
              HasSubstr("22 of 22 convolutions and products in INT8"));
  expect(0, run + "-r fused --stage qat -m m.onnx");
  EXPECT_EQ(count("fused/calibrated.onnx", ir::OpKind::kBatchNormalization), 0);
  // Of a float training they stay.
  expect(0, "train -e spec.yaml -r float --stage float --set train.epochs=1");
  EXPECT_EQ(count("float/model.onnx", ir::OpKind::kBatchNormalization), 21);
}

TEST_F(Quantization, AnAverageOfPeaksIsThatOfBothRuntimes) {
  const auto input_scale = [&](const std::string& more) {
    expect(0, "quantize -m m.onnx --images data --method ema --force -o q.onnx " + more);
    const ir::Graph graph = onnx::import_model(folder_ + "/q.onnx");
    return ir::scalar(graph.find_node("layer1.0.conv1")->input(0)->producer->input(1)).value();
  };
  const float engine = input_scale("");
  EXPECT_NEAR(input_scale("--runtime libtorch"), engine, 1e-5 * engine);
  expect(0, "quantize -m m.onnx --images data --method max --force -o q.onnx");
  const ir::Graph largest = onnx::import_model(folder_ + "/q.onnx");
  EXPECT_LT(engine, ir::scalar(largest.find_node("layer1.0.conv1")->input(0)->producer->input(1)).value());
}

}  // namespace
}  // namespace octet::test
