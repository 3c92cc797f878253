// octet verify: it says "verified" of the engine of the model, and of no other.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/network_files.h"

namespace octet::test {
namespace {

using ir::OpKind;
using ir::Tensor;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Conv, Relu, average, product. `prefix` goes before the names of all tensors between.
ir::Graph network(float gain, const std::string& prefix = "", bool sigmoid = false, bool silu = false) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 3, 8, 8}});
  ir::Value* w = g.add_constant("w", noise({8, 3, 3, 3}, 1, 0.2f), true);
  ir::Value* v = g.add_constant("v", noise({8, 3}, 2, gain), true);
  ir::Value* conv = g.add(OpKind::kConv, prefix + "conv", {x, w}, {{"pads", std::vector<int64_t>(4, 1)}});
  ir::Value* relu = silu ? g.add(OpKind::kMul, prefix + "silu", {conv, g.add(OpKind::kSigmoid, "", {conv})})
                         : g.add(OpKind::kRelu, prefix + "relu", {conv});
  ir::Value* flat =
      g.add(OpKind::kFlatten, prefix + "flat", {g.add(OpKind::kGlobalAveragePool, prefix + "pool", {relu})});
  ir::Value* y = g.add(OpKind::kMatMul, sigmoid ? prefix + "product" : "y", {flat, v});
  if (sigmoid) y = g.add(OpKind::kSigmoid, "y", {y});
  g.add_output(y);
  return g;
}

// By what the model is computed.
const char* const kReferences[] = {"libtorch", "plain"};

class Verify : public NetworkFiles {
 protected:
  void SetUp() override {
    NetworkFiles::SetUp();
    if (!IsSkipped()) write_images();
  }
  // NAME.onnx (float), NAME.q.onnx (calibrated), NAME.octet.
  void make(const std::string& name, ir::Graph graph, const std::string& flags = "") {
    const bool classifier = graph.outputs().size() == 1;
    save(std::move(graph), name + ".onnx");
    expect(0, (classifier ? "calibrate -e spec.yaml -m " : "quantize --images data -m ") + name + ".onnx -o " + name +
                  ".q.onnx");
    expect(0, "compile " + name + ".q.onnx -o " + name + ".octet " + flags);
  }
  Outcome verify(const std::string& model, const std::string& engine, const std::string& flags = "") const {
    return octet("verify -e spec.yaml -m " + model + " --engine_file " + engine + " --json " + engine + ".json " +
                 flags);
  }
};

TEST_F(Verify, HoldsForTheEngineOfTheModel) {
  make("one", network(1), "--profiles 1,4");
  const Outcome outcome = verify("one.q.onnx", "one.octet");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("profile [1, 3, 8, 8]"));
  EXPECT_THAT(outcome.out, HasSubstr("profile [4, 3, 8, 8]"));
  EXPECT_THAT(
      outcome.out,
      HasSubstr("\nverified: same prediction on 18 of 18 images (with 95 % certainty on 82.41 to 100.00 %); 3 of 3 "
                "quantized tensors compared; 0 wrong codes"));
  EXPECT_THAT(outcome.out, EndsWith("\nverified: all 2 profiles\n"));
  EXPECT_THAT(outcome.out, HasSubstr("output y: largest difference"));
  expect(0, "verify -e spec.yaml -m one.q.onnx");
}

TEST_F(Verify, OtherEnginesAreNotTheModel) {
  make("one", network(1));
  make("three", network(3));
  make("other", network(1, "other_"));
  expect(0, "compile one.onnx -o float.octet");
  const struct {
    const char *engine, *objection;
  } cases[] = {{"float.octet", "NOT VERIFIED: the engine holds none of the 3 quantized tensors"},
               {"other.octet", "2 of the 3 quantized tensors of the model are not in the engine"},
               {"three.octet", "NOT VERIFIED: output 'y' differs from the model's by"}};
  for (const std::string reference : kReferences)
    for (const auto& [engine, objection] : cases) {
      const Outcome outcome = verify("one.q.onnx", engine, "--reference " + reference);
      EXPECT_EQ(outcome.code, 3) << engine << outcome.err;
      EXPECT_THAT(outcome.out, HasSubstr(objection));
      EXPECT_THAT(outcome.out, Not(HasSubstr("\nverified")));
    }
}

// A weight that is off by a step of its code is far beyond what float arithmetic explains, also behind a FP32 sigmoid.
TEST_F(Verify, SeesOneWrongWeight) {
  for (const bool sigmoid : {false, true}) {
    const std::string name = sigmoid ? "sigmoid" : "plain";
    make(name, network(1, "", sigmoid));
    ir::Graph wrong = network(1, "", sigmoid);
    ir::Value* weights = wrong.find_value("v");
    std::vector<float> values = weights->constant->to_floats();
    float largest = 0;
    for (float v : values) largest = std::max(largest, std::abs(v));
    size_t smallest = 0;
    for (size_t i = 0; i < values.size(); ++i)
      if (std::abs(values[i]) < std::abs(values[smallest])) smallest = i;
    values[smallest] += largest / 100;
    wrong.set_constant(weights, Tensor::of<float>({8, 3}, values));
    make(name + "_wrong", std::move(wrong));
    for (const std::string reference : kReferences) {
      EXPECT_EQ(verify(name + ".q.onnx", name + ".octet", "--reference " + reference).code, 0);
      const Outcome outcome = verify(name + ".q.onnx", name + "_wrong.octet", "--reference " + reference);
      EXPECT_EQ(outcome.code, 3) << outcome.out;
      EXPECT_THAT(outcome.out, HasSubstr("output 'y' differs"));
    }
  }
}

// The tensors before the output, too: a weight of the first layer that is a tenth of the largest off.
TEST_F(Verify, SeesOneWrongCode) {
  make("one", network(1));
  ir::Graph wrong = network(1);
  ir::Value* weights = wrong.find_value("w");
  std::vector<float> values = weights->constant->to_floats();
  values[5] += 0.02f;
  wrong.set_constant(weights, Tensor::of<float>({8, 3, 3, 3}, values));
  save(std::move(wrong), "wrong.onnx");
  expect(0, "calibrate -e spec.yaml -m wrong.onnx -o wrong.q.onnx");
  expect(0, "compile wrong.q.onnx -o wrong.octet");
  for (const std::string reference : kReferences) {
    const Outcome outcome = verify("one.q.onnx", "wrong.octet", "--reference " + reference);
    EXPECT_EQ(outcome.code, 3) << outcome.out;
    EXPECT_THAT(outcome.out, testing::AnyOf(HasSubstr("codes are wrong"), HasSubstr("in the model")));
  }
}

// The engine computes SiLU behind a convolution on lines, which are up to a quarter of a step from it: another code may
// be right there, and a wrong weight is one all the same.
TEST_F(Verify, LeavesCodesOfAnActivationAsNearAsItsLines) {
  make("one", network(1, "", false, true));
  ir::Graph other = network(1, "", false, true);
  ir::Value* weights = other.find_value("w");
  std::vector<float> values = weights->constant->to_floats();
  values[5] += 0.02f;
  other.set_constant(weights, Tensor::of<float>({8, 3, 3, 3}, values));
  make("wrong", std::move(other));
  for (const std::string reference : kReferences) {
    const Outcome outcome = verify("one.q.onnx", "one.octet", "--reference " + reference);
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("0 wrong codes"));
    const auto tensors = nlohmann::json::parse(read("one.octet.json"))["tensors"];
    const auto silu = std::ranges::find(tensors, "silu/fake_quantize", [](const auto& t) { return t["tensor"]; });
    ASSERT_NE(silu, tensors.end()) << tensors;
    EXPECT_GT((*silu)["ties"], 0) << *silu;
    EXPECT_LT((*silu)["ties"], (*silu)["elements"].get<int64_t>() / 20) << *silu;
    EXPECT_EQ(verify("one.q.onnx", "wrong.octet", "--reference " + reference).code, 3);
  }
}

TEST_F(Verify, WithoutLibTorchTheCodesAreProven) {
  make("one", network(1), "--profiles 1,4");
  const Outcome outcome = verify("one.q.onnx", "one.octet", "--reference plain");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("\nverified: 3 of 3 quantized tensors compared; 0 wrong codes in the tensors of 18 "
                        "images"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("same prediction")));
  const auto json = nlohmann::json::parse(read("one.octet.json"));
  EXPECT_EQ(json["reference"], "plain");
  EXPECT_FALSE(json.contains("agree"));
  // It finds what LibTorch finds.
  ASSERT_EQ(verify("one.q.onnx", "one.octet", "--reference libtorch").code, 0);
  const auto by_libtorch = nlohmann::json::parse(read("one.octet.json"));
  EXPECT_EQ(json["tensors"].size(), by_libtorch["tensors"].size());
  EXPECT_EQ(json["violations"], by_libtorch["violations"]);
  const Outcome refused = octet("verify -e spec.yaml -m one.q.onnx --reference plain --agreement 0.9");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--agreement asks what the model predicts, which LibTorch alone computes"));
}

TEST_F(Verify, ComparesAllOutputs) {
  const auto two = [](float gain) {
    ir::Graph g = network(1);
    g.add_output(g.add(OpKind::kMul, "second", {g.find_value("relu"), g.add_constant("gain", Tensor::scalar(gain))}));
    return g;
  };
  make("two", two(2));
  make("wrong", two(2.001f));
  const Outcome outcome = verify("two.q.onnx", "two.octet");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("output second: "));
  const Outcome wrong = verify("two.q.onnx", "wrong.octet");
  EXPECT_EQ(wrong.code, 3) << wrong.err;
  EXPECT_THAT(wrong.out, HasSubstr("output 'second' differs"));
  make("one", network(1));
  const Outcome fewer = verify("two.q.onnx", "one.octet");
  EXPECT_EQ(fewer.code, 3);
  EXPECT_THAT(fewer.err,
              HasSubstr("the model has 1 inputs and 2 outputs, the engine 1 and 1; was it compiled from this model?"));
}

// What its outputs mean is nobody's concern: they are numbers.
TEST_F(Verify, ANetworkOfNoTaskNeedsNoExperiment) {
  ir::Graph g = network(1);
  g.add_output(g.add(OpKind::kExp, "second", {g.find_value("relu")}));
  save(std::move(g), "two.onnx");
  expect(0, "quantize -m two.onnx --images data --mean 0.5 --std 0.25 -o two.q.onnx");
  expect(0, "compile two.q.onnx -o two.octet");
  for (const std::string reference : kReferences) {
    const Outcome outcome =
        octet("verify -m two.q.onnx --engine_file two.octet --images data --reference " + reference);
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("output second: largest difference"));
    EXPECT_THAT(outcome.out, HasSubstr("\nverified: "));
    EXPECT_THAT(outcome.out, Not(HasSubstr("same prediction")));
  }
}

TEST_F(Verify, NothingToCompareIsNoProof) {
  save(network(1), "float.onnx");
  expect(0, "compile float.onnx -o float.octet");
  for (const char* engine : {"", " --engine_file float.octet"}) {
    const Outcome outcome = octet(std::string("verify -e spec.yaml -m float.onnx") + engine);
    EXPECT_EQ(outcome.code, 3);
    EXPECT_THAT(outcome.err, HasSubstr("float.onnx: has no quantizers"));
    EXPECT_THAT(outcome.out, Not(HasSubstr("verified")));
  }
}

TEST_F(Verify, AnotherSizeOrScaleIsAnotherModel) {
  make("one", network(1));
  ir::Graph wide = network(1);
  wide.inputs()[0]->type.shape = ir::Shape{ir::kDynamic, 3, 16, 16};
  save(std::move(wide), "wide.onnx");
  expect(0, "compile wide.onnx -o wide.octet");
  const Outcome size = verify("one.q.onnx", "wide.octet");
  EXPECT_EQ(size.code, 3);
  EXPECT_THAT(size.err, HasSubstr("input 'x' of the model is [?, 3, 8, 8], that of the engine [1, 3, 16, 16]"));
  expect(0, "calibrate -e spec.yaml -m one.onnx -o max.q.onnx --set quant.calibration.method=max --set data.mean=0.5");
  expect(0, "compile max.q.onnx -o max.octet");
  const Outcome scale = verify("one.q.onnx", "max.octet");
  EXPECT_EQ(scale.code, 3);
  EXPECT_THAT(scale.out, HasSubstr("scale"));
}

}  // namespace
}  // namespace octet::test
