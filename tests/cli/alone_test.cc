// The program without octet_training beside it: from a foreign ONNX file to an engine that runs, and what it says of
// work that takes LibTorch.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/network_files.h"
#include "passes/block_builder.h"

namespace octet::test {
namespace {

using testing::HasSubstr;

// A small network as other tools write them.
ir::Graph foreign() {
  passes::BlockBuilder b({ir::kDynamic, 3, 8, 8});
  ir::Value* left = b.relu(b.bn(b.conv(b.x, "first", 8, 3), "first.bn"), "first.relu");
  ir::Value* right = b.bn(b.conv(left, "second", 8, 3), "second.bn");
  ir::Value* sum = b.relu(b.add(left, right, "sum"), "sum.relu");
  ir::Value* mean = b.op(ir::OpKind::kGlobalAveragePool, "mean", {b.silu(b.conv(sum, "third", 8, 1, true), "swish")});
  b.graph.add_output(b.gemm(b.op(ir::OpKind::kFlatten, "flat", {mean}, {{"axis", int64_t{1}}}), "fc", 3));
  return std::move(b.graph);
}

class Alone : public NetworkFiles {
 protected:
  void SetUp() override {
    Cli::SetUp();
    whole_ = program();
    std::filesystem::copy_file(whole_, folder_ + "/octet");
    if (const char* named = getenv("OCTET_BIN")) before_ = named;
    use(folder_ + "/octet");
    write_images();
    save(foreign(), "net.onnx");
  }
  void TearDown() override {
    if (before_.empty())
      unsetenv("OCTET_BIN");
    else
      use(before_);
    Cli::TearDown();
  }
  static void use(const std::string& program) { setenv("OCTET_BIN", program.c_str(), 1); }

  // Of every quantized tensor, by name.
  std::map<std::string, nlohmann::json> tensors(const std::string& file) const {
    std::map<std::string, nlohmann::json> out;
    const nlohmann::json all = nlohmann::json::parse(read(file));
    for (const auto& tensor : all.at("tensors")) out[tensor.at("tensor")] = tensor;
    return out;
  }

  std::string whole_, before_;
};

TEST_F(Alone, GoesFromAForeignNetworkToAnEngine) {
  expect(0, "quantize -m net.onnx --images data -o net.qdq.onnx --json ranges.json");
  expect(0, "calibrate -e spec.yaml -m net.onnx -o calibrated.onnx");
  expect(0, "export -e spec.yaml -m net.onnx -o exported.onnx --force_ptq");
  expect(0, "compile net.qdq.onnx -o net.octet");
  expect(0, "bench net.octet --threads 1 --runs 3 --windows 1 --window_ms 0");
  for (const char* model : {"net.onnx", "net.qdq.onnx", "calibrated.onnx", "net.octet"}) {
    const Outcome outcome = octet(std::string("evaluate -e spec.yaml -m ") + model);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("(engine, ")) << model;
    expect(0, std::string("infer -e spec.yaml data -m ") + model);
  }
  const auto lines = [&](const char* model) { return octet(std::string("infer -e spec.yaml data -m ") + model).out; };
  EXPECT_EQ(lines("net.qdq.onnx"), lines("net.octet"));
}

TEST_F(Alone, ProvesThatTheEngineIsTheModel) {
  expect(0, "calibrate -e spec.yaml -m net.onnx -o net.q.onnx");
  expect(0, "compile net.q.onnx -o net.octet");
  const Outcome outcome = octet("verify -e spec.yaml -m net.q.onnx --engine_file net.octet --json verify.json");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nverified: "));
  EXPECT_EQ(nlohmann::json::parse(read("verify.json"))["reference"], "plain");
  const Outcome same = octet("compare net.q.onnx net.octet --images data");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("same bits"));
}

TEST_F(Alone, SaysWhatTakesLibTorch) {
  const auto refused = [&](const std::string& arguments, const std::string& what) {
    const Outcome outcome = octet(arguments);
    EXPECT_NE(outcome.code, 0) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(what)) << arguments;
    EXPECT_FALSE(exists("out.onnx")) << arguments;
  };
  refused("calibrate -e spec.yaml --set quant.adaround.iterations=5 -m net.onnx -o out.onnx", "takes LibTorch");
  refused("calibrate -e spec.yaml --set quant.gptq.images=5 -m net.onnx -o out.onnx", "takes LibTorch");
  refused("quantize -m net.onnx --images data --runtime libtorch -o out.onnx", "takes LibTorch");
  refused("quantize -m net.onnx --images data --accuracy-drop 1 -o out.onnx", "");
  refused("evaluate -e spec.yaml -m net.onnx --runtime libtorch", "takes LibTorch");
  refused("verify -e spec.yaml -m net.onnx --reference libtorch", "takes LibTorch");
}

TEST_F(Alone, CorrectsBiasesAsTheOtherProgramDoes) {
  expect(0, "quantize -m net.onnx --images data --method max -o plain.onnx");
  const Outcome corrected =
      octet("quantize -m net.onnx --images data --method max --bias-correction -o corrected.onnx");
  EXPECT_EQ(corrected.code, 0) << corrected.err;
  EXPECT_THAT(corrected.err, HasSubstr("corrected the biases of"));
  EXPECT_NE(read("corrected.onnx"), read("plain.onnx"));
  use(whole_);
  if (!can_train()) GTEST_SKIP() << "this build has no LibTorch";
  expect(0, "quantize -m net.onnx --images data --method max --bias-correction -o same.onnx");
  EXPECT_EQ(read("same.onnx"), read("corrected.onnx"));
}

TEST_F(Alone, CorrectsBiasesByBatchNormsWithoutImages) {
  expect(0, "quantize -m net.onnx --images data --method max -o plain.onnx");
  expect(0, "export -m plain.onnx -o trt.onnx --cal_cache_file cal.bin --trt-version 8.6.1 --target tensorrt");
  const Outcome blind = octet("quantize -m net.onnx --cal_cache_file cal.bin --bias-correction -o out.onnx");
  EXPECT_EQ(blind.code, 2);
  EXPECT_THAT(blind.err, HasSubstr("analytic needs none"));
  const Outcome corrected =
      octet("quantize -m net.onnx --cal_cache_file cal.bin --bias-correction analytic -o corrected.onnx");
  EXPECT_EQ(corrected.code, 0) << corrected.err;
  // "second" reads what "first.bn" tells of, "third" the sum, "fc" what lies behind "third".
  EXPECT_THAT(corrected.err, HasSubstr("corrected the biases of 3 nodes by 2 batch norms"));
  EXPECT_THAT(corrected.err, HasSubstr("their biases stay: 1 node: first"));
  expect(0, "quantize -m net.onnx --cal_cache_file cal.bin -o same.onnx");
  EXPECT_NE(read("same.onnx"), read("corrected.onnx"));
  const Outcome folded =
      octet("quantize -m trt.clean.onnx --cal_cache_file cal.bin --bias-correction analytic -o out.onnx");
  EXPECT_EQ(folded.code, 1);
  EXPECT_THAT(folded.err, HasSubstr("the network has none"));
}

TEST_F(Alone, RangesAreThoseOfLibTorch) {
  expect(0, "quantize -m net.onnx --images data -o engine.onnx --json engine.json");
  use(whole_);
  if (!can_train()) GTEST_SKIP() << "this build has no LibTorch";
  expect(0, "quantize -m net.onnx --images data -o same.onnx --json same.json");
  EXPECT_EQ(read("same.onnx"), read("engine.onnx"));
  expect(0, "quantize -m net.onnx --images data --runtime libtorch -o torch.onnx --json torch.json");
  const auto by_engine = tensors("engine.json"), by_libtorch = tensors("torch.json");
  ASSERT_EQ(by_engine.size(), by_libtorch.size());
  for (const auto& [name, torch] : by_libtorch) {
    const nlohmann::json& own = by_engine.at(name);
    const double range = torch.at("max").get<double>() - torch.at("min").get<double>();
    for (const char* end : {"min", "max"})
      EXPECT_NEAR(own.at(end).get<double>(), torch.at(end).get<double>(), 1e-5 * range) << name;
    EXPECT_EQ(own.at("count"), torch.at("count")) << name;
    EXPECT_NEAR(own.at("amax").get<double>() / torch.at("amax").get<double>(), 1, 2e-3) << name;
  }
}

}  // namespace
}  // namespace octet::test
