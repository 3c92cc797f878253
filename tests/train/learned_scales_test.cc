// Scales of quantizers as parameters of an executor.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "ir/infer.h"
#include "train/executor.h"
#include "train/parameters.h"
#include "train/small_training.h"

namespace octet::train {
namespace {

ir::Value* quantized(ir::Graph& g, const std::string& name, ir::Value* x, float step, const std::string& state) {
  return g.add(ir::OpKind::kFakeQuantize, name,
               {x, g.add_constant(name + "/scale", ir::Tensor::scalar<float>(step)),
                g.add_constant(name + "/zero_point", ir::Tensor::scalar<int8_t>(0))},
               {{"qmin", int64_t{-7}}, {"qmax", int64_t{7}}, {"state", state}});
}

// A quantized convolution with numbers and steps that BF16 holds exactly: so codes do not depend on the precision.
ir::Graph one_convolution(const std::string& state) {
  ir::Graph g;
  g.name = "one";
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 2, 4, 4}});
  std::vector<float> weights;
  for (int i = 0; i < 16; ++i) weights.push_back(static_cast<float>(i * 7 % 31 - 15) / 64);
  ir::Value* w = g.add_constant("w", ir::Tensor::of<float>({8, 2, 1, 1}, weights), true);
  g.add_output(
      g.add(ir::OpKind::kConv, "conv", {quantized(g, "xq", x, 0.125f, state), quantized(g, "wq", w, 0.03125f, state)}));
  ir::infer_shapes(g);
  return g;
}

// Of xq/scale and wq/scale, for a loss that is linear in the outputs.
std::vector<double> gradients(const std::string& state, Precision precision) {
  Executor executor(one_convolution(state), {.precision = precision});
  const at::Tensor x = at::arange(96).mul(37).remainder(61).sub(30).div(16).reshape({3, 2, 4, 4}).to(at::kFloat),
                   factors = at::arange(384).mul(29).remainder(17).sub(5).div(8).reshape({3, 8, 4, 4}).to(at::kFloat);
  std::vector<at::Tensor> scales;
  for (const auto& [name, tensor] : executor.named_parameters())
    if (name.find("scale") != std::string::npos) scales.push_back(tensor);
  const at::Tensor loss = (executor.forward({x}, Mode::kTrain).at(0) * factors).sum();
  std::vector<double> out;
  for (const at::Tensor& g : torch::autograd::grad({loss}, scales)) out.push_back(g.item<double>());
  return out;
}

TEST(LearnedScales, HaveTheSameGradientsWhereCodesFlow) {
  for (const char* state : {ir::kLearned, ir::kLearnedOffset, ir::kLearnedClip}) {
    const std::vector<double> numbers = gradients(state, Precision::kFloat32),
                              codes = gradients(state, Precision::kBFloat16);
    ASSERT_EQ(numbers.size(), 2u);
    ASSERT_EQ(codes.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_GT(std::abs(numbers[i]), 1e-3) << state << " " << i;
      EXPECT_NEAR(codes[i], numbers[i], 0.02 * std::abs(numbers[i])) << state << " " << i;
    }
  }
}

// A step may take a scale below zero: what is written computes what was trained.
TEST(LearnedScales, AreWrittenAsTheyCount) {
  ir::Graph graph = one_convolution(ir::kLearned);
  Executor executor(graph);
  const at::Tensor x = at::arange(96).div(16).sub(3).reshape({3, 2, 4, 4}).to(at::kFloat);
  {
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : executor.named_parameters())
      if (name == "wq/scale") at::Tensor(tensor).fill_(-0.0625);
  }
  const at::Tensor trained = executor.forward({x}, Mode::kEval).at(0);
  executor.write_back(graph);
  EXPECT_EQ(graph.find_value("wq/scale")->constant->to_floats(), std::vector<float>{0.0625f});
  EXPECT_TRUE(at::equal(Executor(graph).forward({x}, Mode::kEval).at(0), trained));
}

// The offset is a number of its own while it learns, and a zero point wherever the graph is written.
TEST(LearnedScales, WriteAnOffsetAsAZeroPoint) {
  ir::Graph graph = one_convolution(ir::kFrozen);
  graph.find_node("xq")->attributes["state"] = std::string(ir::kLearnedOffset);
  graph.find_value("xq/zero_point")->constant = ir::Tensor::scalar<int8_t>(-3);
  Executor executor(graph);
  const at::Tensor x = at::arange(96).div(16).sub(3).reshape({3, 2, 4, 4}).to(at::kFloat);
  const at::Tensor before = executor.forward({x}, Mode::kEval).at(0);
  ir::Graph frozen = graph.clone();
  frozen.find_node("xq")->attributes["state"] = std::string(ir::kFrozen);
  EXPECT_TRUE(at::equal(Executor(frozen).forward({x}, Mode::kEval).at(0), before));
  const auto set = [&](const std::string& parameter, double value) {
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : executor.named_parameters())
      if (name == parameter) {
        EXPECT_EQ(tensor.scalar_type(), at::kFloat);
        at::Tensor(tensor).fill_(value);
      }
  };
  set("xq/zero_point", 0.3);
  set("xq/scale", -0.125);
  const at::Tensor trained = executor.forward({x}, Mode::kEval).at(0);
  EXPECT_FALSE(at::equal(trained, before));
  executor.write_back(graph);
  EXPECT_EQ(graph.find_value("xq/zero_point")->constant->to_floats(), std::vector<float>{-2});  // -0.3 / 0.125
  EXPECT_EQ(graph.find_value("xq/zero_point")->constant->data_type(), ir::DataType::kInt8);
  EXPECT_TRUE(at::equal(Executor(graph).forward({x}, Mode::kEval).at(0), trained));
  set("xq/zero_point", 7);
  executor.load_from(graph);
  EXPECT_TRUE(at::equal(executor.forward({x}, Mode::kEval).at(0), trained));
  set("xq/zero_point", -100);  // beyond the codes
  executor.write_back(graph);
  EXPECT_EQ(graph.find_value("xq/zero_point")->constant->to_floats(), std::vector<float>{7});
}

TEST(LearnedScales, AreParametersThatHaveNoDecayUnlessTheyClip) {
  const auto decay = [](const std::string& state) {
    const Executor executor(one_convolution(state));
    OptimizerOptions options{.weight_decay = 0.5};
    std::map<std::string, double> out;
    for (const NamedParameter& p : classify_parameters(executor, false)) out[p.name] = rule_of(options, p).weight_decay;
    return out;
  };
  EXPECT_EQ(decay(ir::kFrozen), (std::map<std::string, double>{{"w", 0.5}}));
  EXPECT_EQ(decay(ir::kLearned), (std::map<std::string, double>{{"w", 0.5}, {"wq/scale", 0}, {"xq/scale", 0}}));
  EXPECT_EQ(decay(ir::kLearnedOffset),
            (std::map<std::string, double>{
                {"w", 0.5}, {"wq/scale", 0}, {"wq/zero_point", 0}, {"xq/scale", 0}, {"xq/zero_point", 0}}));
  EXPECT_EQ(decay(ir::kLearnedClip), (std::map<std::string, double>{{"w", 0.5}, {"wq/scale", 0.5}, {"xq/scale", 0.5}}));
}

}  // namespace
}  // namespace octet::train
