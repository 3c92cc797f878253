// octet prune as a person meets it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/network_files.h"
#include "models/zoo.h"
#include "support/trained_look.h"

namespace octet::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class Prune : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    models::ModelOptions options = models::default_options("resnet20");
    ir::Graph graph = models::build_model(options);
    octet::testing::look_trained(graph);
    graph.metadata["octet.stage"] = "float";
    onnx::export_model(graph, folder_ + "/net.onnx");
  }
  json result(const std::string& arguments, int code = 0) const {
    const Outcome outcome = octet("prune -m net.onnx --json result.json " + arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.out << outcome.err;
    return json::parse(read("result.json"));
  }
  std::string refused(const std::string& arguments, int code = 2) const {
    const Outcome outcome = octet("prune -m net.onnx " + arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    return outcome.err;
  }
};

TEST_F(Prune, TaosFlagsAndTheirLongNames) {
  const json tao = result("-o a.onnx -pth 0.5 -pg 4 -nf 8 -eq intersection -n max -el 'layer3*' conv1 -k key");
  EXPECT_EQ(tao["options"]["pruning_granularity"], 4);
  EXPECT_EQ(tao["options"]["excluded_layers"], json({"layer3*", "conv1"}));
  const json spelled = result(
      "-o b.onnx --pruning_threshold=0.5 --pruning_granularity 4 --min_num_filters 8 --equalization_criterion "
      "intersection --normalizer max --excluded_layers 'layer3*' conv1");
  EXPECT_EQ(tao["layers"], spelled["layers"]);
  EXPECT_EQ(read("a.onnx"), read("b.onnx"));
  EXPECT_LT(tao["pruning_ratio"], 1.0);
  EXPECT_EQ(tao["proof"]["holds"], true);
  for (const json& layer : tao["layers"]) {
    const std::string name = layer["name"];
    if (name.rfind("layer3", 0) == 0) {
      EXPECT_EQ(layer["outputs"]["before"], layer["outputs"]["after"]) << name;
    }
    if (!layer["group"].is_null()) {
      EXPECT_EQ(layer["outputs"]["after"].get<int64_t>() % 4, 0) << name;
    }
  }
  EXPECT_THAT(refused("-o c.onnx -ptx 0.5"), HasSubstr("did you mean '-pth'"));
}

TEST_F(Prune, ADryRunWritesNothing) {
  const Outcome dry = octet("prune -m net.onnx --dry-run -pth 0.6");
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("layer1.0.conv1"));
  EXPECT_THAT(dry.out, HasSubstr("'logits' is an output of the network"));
  EXPECT_THAT(dry.out, HasSubstr("pruning ratio"));
  EXPECT_THAT(dry.out, HasSubstr("proof: "));
  EXPECT_FALSE(exists("out.onnx"));
}

TEST_F(Prune, TargetsAreReached) {
  const std::string small = " -pg 1 -nf 1 ";
  for (const double share : {0.5, 0.2}) {
    const json parameters = result("-o p.onnx --force --target-params " + std::to_string(share) + small);
    EXPECT_LE(parameters["pruning_ratio"], share);
    EXPECT_GT(parameters["pruning_ratio"], 0.8 * share);  // no more than was asked for
    const json macs = result("-o m.onnx --force --target-macs " + std::to_string(share) + small);
    const double left = macs["macs"]["after"].get<double>() / macs["macs"]["before"].get<double>();
    EXPECT_LE(left, share);
    EXPECT_GT(left, 0.8 * share);
  }
  EXPECT_THAT(refused("-o q.onnx --target-params 0.0001", 1), HasSubstr("--min_num_filters"));
  EXPECT_FALSE(exists("q.onnx"));
  EXPECT_THAT(refused("-o q.onnx --target-params 0.5 -pth 0.3"), HasSubstr("excludes"));
}

TEST_F(Prune, LatencyIsMeasured) {
  const json result = this->result("-o t.onnx --target-latency 0.9 -pg 1 -nf 1 --threads 1 --data_type fp32");
  EXPECT_LE(result["latency"]["share"], 0.9);
  EXPECT_THAT(result["latency"]["on"].get<std::string>(), HasSubstr("FP32 engine"));
  EXPECT_THAT(result["latency"]["on"].get<std::string>(), HasSubstr("1 thread"));
  EXPECT_THAT(refused("-o u.onnx --target-latency soon"), HasSubstr("a share of the whole network's time"));
  EXPECT_THAT(refused("-o u.onnx --target-latency 1.5"), HasSubstr("milliseconds"));
}

TEST_F(Prune, TheResultGoesOn) {
  result("-o pruned.onnx -pth 0.6 -r results");
  EXPECT_THAT(octet("inspect pruned.onnx").out, HasSubstr("octet.stage  float"));
  EXPECT_THAT(octet("inspect pruned.onnx").out, HasSubstr("octet.pruning_ratio"));
  EXPECT_THAT(read("results/status.jsonl"), HasSubstr("pruning_ratio"));
  EXPECT_EQ(octet("compile -m pruned.onnx -o pruned.octet").code, 0);
  const Outcome again = octet("prune -m pruned.onnx -o twice.onnx -pth 0.6 -nf 8");
  EXPECT_EQ(again.code, 0) << again.err;
}

TEST_F(Prune, MistakesAreNamed) {
  EXPECT_THAT(refused(""), HasSubstr("--dry-run"));
  EXPECT_THAT(refused("-o x.onnx -el layr1.0.conv1"), HasSubstr("did you mean 'layer1.0.conv1'"));
  EXPECT_THAT(refused("-o x.onnx -n min"), HasSubstr("none of max, L2"));
  EXPECT_THAT(refused("-o x.onnx -eq all"), HasSubstr("union"));
  EXPECT_THAT(refused("-o x.octet"), HasSubstr(".onnx"));
  write("there.onnx", "");
  EXPECT_THAT(refused("-o there.onnx"), HasSubstr("--force"));
  EXPECT_THAT(refused("-o x.onnx -i nowhere"), HasSubstr("no such file or folder"));
  EXPECT_FALSE(exists("x.onnx"));

  models::ModelOptions options = models::default_options("resnet20");
  ir::Graph graph = models::build_model(options);
  ir::Value* x = graph.inputs()[0];
  ir::Node* reader = x->users[0];
  ir::Value* scale = graph.add_constant("s", ir::Tensor::scalar(0.1f));
  ir::Value* zero = graph.add_constant("z", ir::Tensor::scalar<int8_t>(0));
  graph.set_input(reader, 0, graph.add(ir::OpKind::kFakeQuantize, "q", {x, scale, zero}, {}, reader));
  onnx::export_model(graph, folder_ + "/quantized.onnx");
  const Outcome quantized = octet("prune -m quantized.onnx -o x.onnx");
  EXPECT_EQ(quantized.code, 2);
  EXPECT_THAT(quantized.err, HasSubstr("prune the float model, train that again"));
}

}  // namespace
}  // namespace octet::test
