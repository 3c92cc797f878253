// Operators that the graph and the program behind it both have: the same node gives the same numbers in either.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "draft_model.h"
#include "run_program.h"

namespace octet::onnx {
namespace {

using Ints = std::vector<int64_t>;

struct OperatorCase {
  std::string op;
  ir::Shape input;
  std::vector<ir::Shape> weights;  // of random numbers; all above 0 of a BatchNormalization
  ir::Attributes attributes;
  int opset = 21;
};

ir::Tensor random_tensor(const ir::Shape& shape, uint32_t seed, float low = -2) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(low, 2);
  std::vector<float> values(static_cast<size_t>(ir::element_count(shape)));
  for (float& v : values) v = numbers(random);
  return floats(shape, values);
}

Draft draft_of(const OperatorCase& c, bool behind) {
  Draft draft(c.opset, c.input);
  std::vector<std::string> inputs{"x"};
  if (behind) {  // x, as something that comes up in a run
    draft.constant("low", floats({}, {-1e30f}));
    draft.node("Greater", {"x", "low"}, {"greater"})
        .node("Cast", {"greater"}, {"ones"}, {{"to", int64_t{1}}})
        .node("Mul", {"x", "ones"}, {"found"});
    inputs = {"found"};
  }
  for (size_t i = 0; i < c.weights.size(); ++i) {
    inputs.push_back("w" + std::to_string(i));
    const bool positive = c.op == "BatchNormalization" || c.op == "Resize" || c.op == "Upsample";
    ir::Tensor weights = random_tensor(c.weights[i], static_cast<uint32_t>(i + 1), positive ? 0.25f : -2.0f);
    if (c.op == "Resize" || c.op == "Upsample") weights = floats({4}, {1, 1, 1.75f, 0.6f});
    draft.constant(inputs.back(), weights);
  }
  if (c.op == "Resize" && c.opset > 10) inputs.insert(inputs.begin() + 1, "");
  draft.node(c.op, inputs, {"y"}, c.attributes);
  return draft;
}

void PrintTo(const OperatorCase& c, std::ostream* out) {
  *out << c.op << ir::shape_string(c.input);
}

class ProgramOperator : public ::testing::TestWithParam<OperatorCase> {};

TEST_P(ProgramOperator, GivesWhatItGivesInTheGraph) {
  const ir::Tensor x = random_tensor(GetParam().input, 7);
  const ir::Graph graph = draft_of(GetParam(), false).import(), behind = draft_of(GetParam(), true).import();
  ASSERT_FALSE(graph.program);
  ASSERT_TRUE(behind.program);
  const ir::Tensor expected = ir::evaluate_graph(graph, {x}).at(0);
  const dense::Tensor found = run_program(behind, x).at(0);
  ASSERT_EQ(found.shape(), expected.shape());
  float largest = 0;
  for (const float v : expected.to_floats()) largest = std::max(largest, std::fabs(v));
  EXPECT_THAT(found.values<float>(), ::testing::Pointwise(::testing::FloatNear(1e-5f * largest), expected.to_floats()));
}

INSTANTIATE_TEST_SUITE_P(
    Convolutions, ProgramOperator,
    ::testing::Values(
        OperatorCase{"Conv", {2, 3, 7, 6}, {{4, 3, 3, 3}, {4}}, {{"pads", Ints{1, 1, 1, 1}}}},
        OperatorCase{"Conv", {1, 4, 9, 8}, {{6, 2, 3, 2}}, {{"group", int64_t{2}}, {"strides", Ints{2, 1}}}},
        OperatorCase{"Conv", {1, 4, 9, 8}, {{4, 1, 3, 3}}, {{"group", int64_t{4}}, {"dilations", Ints{2, 3}}}},
        OperatorCase{"Conv", {1, 2, 8, 5}, {{3, 2, 3, 4}}, {{"auto_pad", "SAME_UPPER"}, {"strides", Ints{2, 2}}}},
        OperatorCase{"Conv", {1, 2, 8, 5}, {{3, 2, 4, 3}}, {{"auto_pad", "SAME_LOWER"}, {"strides", Ints{3, 1}}}},
        OperatorCase{"Conv", {1, 2, 8, 5}, {{3, 2, 3, 3}}, {{"auto_pad", "VALID"}}},
        OperatorCase{"Conv", {3, 2, 11}, {{4, 2, 3}, {4}}, {{"pads", Ints{2, 0}}}},
        OperatorCase{"Conv", {1, 2, 4, 5, 6}, {{3, 2, 2, 3, 2}}, {{"pads", Ints{0, 1, 1, 1, 0, 0}}}},
        OperatorCase{"Conv", {1, 64, 70, 70}, {{8, 64, 3, 3}}, {}},  // more than a block
        OperatorCase{"ConvTranspose", {2, 3, 5, 4}, {{3, 2, 3, 3}, {2}}, {{"strides", Ints{2, 2}}}},
        OperatorCase{
            "ConvTranspose", {1, 4, 5, 4}, {{4, 3, 3, 2}}, {{"group", int64_t{2}}, {"pads", Ints{1, 0, 0, 1}}}},
        OperatorCase{"ConvTranspose",
                     {1, 2, 5, 4},
                     {{2, 2, 3, 3}},
                     {{"strides", Ints{3, 2}}, {"output_padding", Ints{1, 1}}, {"dilations", Ints{1, 2}}}},
        OperatorCase{"ConvTranspose", {2, 2, 7}, {{2, 3, 4}}, {{"strides", Ints{2}}, {"pads", Ints{1, 1}}}}));

INSTANTIATE_TEST_SUITE_P(
    Pools, ProgramOperator,
    ::testing::Values(
        OperatorCase{"MaxPool", {2, 3, 7, 6}, {}, {{"kernel_shape", Ints{3, 2}}, {"pads", Ints{1, 0, 1, 1}}}},
        OperatorCase{"MaxPool",
                     {1, 2, 8, 7},
                     {},
                     {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 3}}, {"ceil_mode", int64_t{1}}}},
        OperatorCase{"MaxPool", {1, 2, 9, 9}, {}, {{"kernel_shape", Ints{2, 3}}, {"dilations", Ints{3, 2}}}},
        OperatorCase{"AveragePool", {1, 2, 7, 6}, {}, {{"kernel_shape", Ints{3, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
        OperatorCase{"AveragePool",
                     {1, 2, 7, 6},
                     {},
                     {{"kernel_shape", Ints{3, 3}},
                      {"pads", Ints{1, 1, 1, 1}},
                      {"strides", Ints{2, 2}},
                      {"ceil_mode", int64_t{1}},
                      {"count_include_pad", int64_t{1}}}},
        OperatorCase{"AveragePool", {1, 2, 7}, {}, {{"kernel_shape", Ints{2}}, {"auto_pad", "SAME_UPPER"}}},
        OperatorCase{"GlobalAveragePool", {2, 3, 5, 4}, {}, {}}, OperatorCase{"GlobalMaxPool", {2, 3, 5, 4}, {}, {}}));

std::vector<OperatorCase> resizes() {
  std::vector<OperatorCase> out{{"Resize", {1, 2, 5, 6}, {{4}}, {{"mode", "linear"}}, 10},
                                {"Upsample", {1, 2, 5, 6}, {{4}}, {{"mode", "nearest"}}, 9},
                                {"Resize", {1, 2, 5, 6}, {{4}}, {{"mode", "cubic"}, {"cubic_coeff_a", -0.5f}}}};
  for (const char* places : {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"})
    for (const char* mode : {"nearest", "linear", "cubic"})
      out.push_back({"Resize", {1, 2, 5, 6}, {{4}}, {{"mode", mode}, {"coordinate_transformation_mode", places}}});
  for (const char* rounding : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"})
    out.push_back({"Resize", {1, 2, 5, 6}, {{4}}, {{"mode", "nearest"}, {"nearest_mode", rounding}}});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Resizes, ProgramOperator, ::testing::ValuesIn(resizes()));

std::vector<OperatorCase> pads() {
  std::vector<OperatorCase> out;
  for (const char* mode : {"constant", "reflect", "edge"})
    for (const Ints& pads : {Ints{0, 1, 2, 1, 1, 3}, Ints{0, -1, 3, 0, 2, -4}})
      out.push_back({"Pad", {2, 3, 5}, {}, {{"mode", mode}, {"pads", pads}}, 10});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Pads, ProgramOperator, ::testing::ValuesIn(pads()));

INSTANTIATE_TEST_SUITE_P(
    Normalizations, ProgramOperator,
    ::testing::Values(OperatorCase{"BatchNormalization", {2, 3, 4, 5}, {{3}, {3}, {3}, {3}}, {{"epsilon", 0.01f}}},
                      OperatorCase{"InstanceNormalization", {2, 3, 4, 5}, {{3}, {3}}, {{"epsilon", 0.01f}}},
                      OperatorCase{"GroupNormalization", {2, 6, 4}, {{6}, {6}}, {{"num_groups", int64_t{3}}}},
                      OperatorCase{"GroupNormalization", {2, 6, 4}, {{3}, {3}}, {{"num_groups", int64_t{3}}}, 18},
                      OperatorCase{"LayerNormalization", {2, 3, 4, 5}, {{4, 5}, {4, 5}}, {{"axis", int64_t{-2}}}},
                      OperatorCase{"LayerNormalization", {2, 3, 5}, {{5}}, {}}));

INSTANTIATE_TEST_SUITE_P(
    Activations, ProgramOperator,
    ::testing::Values(OperatorCase{"Sigmoid", {2, 9}, {}, {}}, OperatorCase{"Softplus", {2, 9}, {}, {}},
                      OperatorCase{"Softsign", {2, 9}, {}, {}}, OperatorCase{"HardSwish", {2, 9}, {}, {}},
                      OperatorCase{"Mish", {2, 9}, {}, {}}, OperatorCase{"Gelu", {2, 9}, {}, {}},
                      OperatorCase{"Gelu", {2, 9}, {}, {{"approximate", "tanh"}}},
                      OperatorCase{"Elu", {2, 9}, {}, {{"alpha", 0.5f}}}, OperatorCase{"Selu", {2, 9}, {}, {}},
                      OperatorCase{"Celu", {2, 9}, {}, {{"alpha", 0.5f}}},
                      OperatorCase{"Swish", {2, 9}, {}, {{"alpha", 1.5f}}, 24},
                      OperatorCase{"Shrink", {2, 9}, {}, {{"bias", 0.75f}, {"lambd", 0.75f}}},
                      OperatorCase{"LeakyRelu", {2, 9}, {}, {{"alpha", 0.25f}}},
                      OperatorCase{"HardSigmoid", {2, 9}, {}, {{"alpha", 0.3f}}},
                      OperatorCase{"Dropout", {2, 9}, {}, {}}));

// Operators that are written with others lie in a program as these.
INSTANTIATE_TEST_SUITE_P(Rewritten, ProgramOperator,
                         ::testing::Values(OperatorCase{"Mean", {2, 9}, {{9}}, {}},
                                           OperatorCase{"LpNormalization", {2, 9}, {}, {{"axis", int64_t{1}}}}));

}  // namespace
}  // namespace octet::onnx
