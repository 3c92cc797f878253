// octet compare: two networks on the same images, without an experiment.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/network_files.h"

namespace octet::test {
namespace {

using ir::OpKind;
using nlohmann::json;
using testing::HasSubstr;

ir::Graph network_of_classes(float gain, int64_t classes = 3, const std::string& output = "y") {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 3, 8, 8}});
  ir::Value* w = g.add_constant("w", noise({8, 3, 3, 3}, 1, 0.2f), true);
  ir::Value* v = g.add_constant("v", noise({8, classes}, 2, gain), true);
  ir::Value* relu =
      g.add(OpKind::kRelu, "relu", {g.add(OpKind::kConv, "conv", {x, w}, {{"pads", std::vector<int64_t>(4, 1)}})});
  ir::Value* flat = g.add(OpKind::kFlatten, "flat", {g.add(OpKind::kGlobalAveragePool, "pool", {relu})});
  g.add_output(g.add(OpKind::kMatMul, output, {flat, v}));
  return g;
}

class Compare : public NetworkFiles {
 protected:
  void SetUp() override {
    Cli::SetUp();  // it needs no LibTorch
    write_images();
    save(network_of_classes(1), "one.onnx");
    expect(0, "quantize -m one.onnx --images data --mean 0.5 --std 0.25 -o one.q.onnx");
    expect(0, "compile one.q.onnx -o one.octet");
  }
};

TEST_F(Compare, AFloatNetworkWithItsEngine) {
  // one.onnx does not say its mean and std, one.octet does.
  const Outcome outcome = octet("compare one.onnx one.octet --images data --json - --csv one.csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json j = json::parse(outcome.out);
  EXPECT_EQ(j["images"], 18);
  ASSERT_EQ(j["outputs"].size(), 1u);
  const json& y = j["outputs"][0];
  EXPECT_EQ(y["output"], "y");
  EXPECT_EQ(y["elements"], 54);
  EXPECT_GT(y["sqnr_db"], 20.0);
  EXPECT_LT(y["sqnr_db"], 70.0);
  EXPECT_GT(y["cosine"], 0.99);
  EXPECT_LT(y["largest_difference"], 0.1);
  EXPECT_EQ(y["classes"]["images"], 18);
  EXPECT_EQ(y["classes"]["agree"].get<int>() + static_cast<int>(y["classes"]["differences"].size()), 18);
  const std::string csv = read("one.csv");
  EXPECT_THAT(csv, testing::StartsWith("first,second,output,images,elements,different,sqnr_db,cosine,"));
  EXPECT_THAT(csv, HasSubstr("\none.onnx,one.octet,y,18,54,"));
}

TEST_F(Compare, TheSameNetworkGivesTheSameBits) {
  // What the model is run as, compiled on the spot or before, changes nothing.
  const Outcome outcome = octet("compare one.q.onnx one.octet --images data");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("same bits"));
  EXPECT_THAT(outcome.out, HasSubstr("y: same class on 18 of 18 images (with 95 % certainty on 82.41 to 100.00 %)"));
}

TEST_F(Compare, PreprocessingIsThatOfTheFilesAndFlags) {
  const auto sqnr = [&](const std::string& flags) {
    const Outcome outcome = octet("compare one.onnx one.octet --images data --json - " + flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out)["outputs"][0];
  };
  // Other pixels: other outputs, of both.
  EXPECT_NE(sqnr("--mean 0 --std 1")["magnitude"], sqnr("")["magnitude"]);
  EXPECT_EQ(sqnr("--mean 0.5 --std 0.25"), sqnr(""));
  const Outcome unknown = octet("compare one.onnx one.onnx --images data");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("one.onnx: does not say the mean and std of its input; give --mean and --std"));
}

TEST_F(Compare, HoldsWhatIsAskedFor) {
  save(network_of_classes(0.1f), "other.onnx");
  const std::string line = "compare one.onnx other.onnx --mean 0.5 --std 0.25 --images data";
  expect(0, line);
  const Outcome outcome = octet(line + " --min_sqnr 20");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.out,
              HasSubstr("NOT HELD: output 'y' is 0.92 dB from the first, and --min_sqnr asks for 20.00 dB"));
  // A tenth of the same scores: the same classes.
  expect(0, line + " --agreement 1");
}

TEST_F(Compare, OutputsMustFit) {
  save(network_of_classes(1, 4), "four.onnx");
  save(network_of_classes(1, 3, "z"), "z.onnx");
  const std::string flags = " --mean 0.5 --std 0.25 --images data";
  const Outcome other = octet("compare one.onnx four.onnx" + flags);
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("output 'y' is [1, 3] in the first network and [1, 4] in the second"));
  // Another name: by their order.
  const Outcome named = octet("compare one.onnx z.onnx --json -" + flags);
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_EQ(json::parse(named.out)["outputs"][0]["second_output"], "z");
  const Outcome none = octet("compare one.onnx z.onnx");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("name the images"));
  const Outcome peer = octet("compare onnxruntime:one.octet one.onnx" + flags);
  EXPECT_EQ(peer.code, 2);
  EXPECT_THAT(peer.err, HasSubstr("onnxruntime:one.octet: onnxruntime runs ONNX files (.onnx) alone"));
}

}  // namespace
}  // namespace octet::test
