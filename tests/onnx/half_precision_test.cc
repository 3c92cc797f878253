// Networks that compute in 16-bit floats are read as float32.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "draft_model.h"

namespace octet::onnx {
namespace {

using ir::DataType;
using ir::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kHalfCode = 10, kBrainCode = 16;

Tensor bits(DataType type, ir::Shape shape, const std::vector<uint16_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return Tensor(type, std::move(shape), {bytes.begin(), bytes.end()});
}

void expect_no_half(const ir::Graph& graph) {
  for (const ir::Value* v : graph.values()) {
    EXPECT_NE(v->type.data_type, DataType::kFloat16) << v->name;
    EXPECT_NE(v->type.data_type, DataType::kBFloat16) << v->name;
  }
}

// import() verifies the graph, so a mixture of types would not pass.
TEST(HalfPrecision, BetweenCasts) {
  for (const auto& [code, type, one_and_half] : {std::tuple{kHalfCode, DataType::kFloat16, uint16_t{0x3e00}},
                                                 std::tuple{kBrainCode, DataType::kBFloat16, uint16_t{0x3fc0}}}) {
    Draft d(22);
    d.constant("w", bits(type, {3, 1, 1}, {one_and_half, one_and_half, 0}));
    d.node("Cast", {"x"}, {"h"}, {{"to", code}}).node("Mul", {"h", "w"}, {"m"});
    d.node("CastLike", {"m", "x"}, {"y"});
    ::testing::internal::CaptureStderr();
    const ir::Graph graph = d.import();
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("node 'n_h' (Cast) is of "));
    expect_no_half(graph);
    EXPECT_THAT(graph.find_value("w")->constant->to_floats(), ElementsAre(1.5f, 1.5f, 0));
  }
}

TEST(HalfPrecision, InputsScalesAndAttributes) {
  Draft d(23);
  d.inputs[0].type.data_type = DataType::kFloat16;
  d.constant("s", bits(DataType::kFloat16, {}, {0x3800})).constant("z", Tensor::scalar<int8_t>(0));
  d.constant("n", ints({1, 1, 8, 8}));
  d.node("QuantizeLinear", {"x", "s", "z"}, {"q"}, {{"precision", kHalfCode}});
  d.node("DequantizeLinear", {"q", "s", "z"}, {"f"}, {{"output_dtype", kHalfCode}});
  d.node("ConstantOfShape", {"n"}, {"c"}, {{"value", bits(DataType::kFloat16, {1}, {0x3c00})}});
  d.node("Add", {"f", "c"}, {"y"});
  ::testing::internal::CaptureStderr();
  const ir::Graph graph = d.import();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("input 'x' is of float16 (and 2 other places)"));
  expect_no_half(graph);
  EXPECT_EQ(op_names(graph), (std::vector<std::string>{"FakeQuantize", "Add"}));
  EXPECT_THAT(graph.find_node("n_f")->input(1)->constant->to_floats(), ElementsAre(0.5f));
}

// Weights that are only stored in 16 bits compute nothing in them.
TEST(HalfPrecision, StoredOnly) {
  Draft d(17);
  d.constant("w", bits(DataType::kFloat16, {3, 1, 1}, {0x3e00, 0, 0})).node("Cast", {"w"}, {"f"}, {{"to", int64_t{1}}});
  d.node("Mul", {"x", "f"}, {"y"});
  ::testing::internal::CaptureStderr();
  expect_no_half(d.import());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace octet::onnx
