// Export in float16.
#include "onnx/narrow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "draft_model.h"
#include "ir/half.h"
#include "ir/infer.h"
#include "onnx/export.h"
#include "onnx/proto.h"

namespace octet::onnx {
namespace {

using ir::OpKind;
using ir::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int kFloat = 1, kHalf = 10;

// conv -> clip -> resize, and a second output that is a constant of another node, too.
ir::Graph narrow_network(float weight = 0.1f) {
  ir::Graph graph;
  Value* x = graph.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, 2, 4, 4}});
  Value* w = graph.add_constant("w", floats({3, 2, 1, 1}, {weight, 0.2f, 0.3f, -0.4f, 1e-9f, 6}));
  Value* c = graph.add(OpKind::kConv, "c", {x, w});
  Value* low = graph.add_constant("low", ir::Tensor::scalar(0.0f));
  Value* r = graph.add(OpKind::kClip, "r", {c, low});
  Value* scales = graph.add_constant("scales", floats({4}, {1, 1, 2, 2}));
  Value* y = graph.add(OpKind::kResize, "y", {r, nullptr, scales}, {{"mode", std::string("linear")}});
  graph.add_output(y);
  graph.add_output(low);
  ir::infer_shapes(graph);
  return graph;
}

TEST(Narrow, InputsAndOutputsStayWhatTheyAre) {
  const std::string bytes = export_bytes(narrow_network(), {.half_precision = true});
  const proto::Model model = proto::parse_model(bytes);
  std::map<std::string, int64_t> constants;
  for (const proto::Tensor& t : model.graph->initializers) constants[std::string(t.name)] = t.data_type;
  EXPECT_EQ(constants, (std::map<std::string, int64_t>{
                           {"w", kHalf}, {"scales", kFloat}, {"low", kFloat}, {"low_float16", kHalf}}));
  EXPECT_EQ(model.graph->inputs[0].elem_type, kFloat);
  EXPECT_EQ(model.graph->outputs[0].name, "y");
  EXPECT_EQ(model.graph->outputs[0].elem_type, kFloat);
  std::vector<std::string> ops;
  for (const proto::Node& node : model.graph->nodes) ops.push_back(node.op_type);
  EXPECT_THAT(ops, ElementsAre("Cast", "Conv", "Clip", "Resize", "Cast"));
}

TEST(Narrow, ReadsAsTheNetworkWithRoundedWeights) {
  const ir::Graph original = narrow_network();
  const ir::Graph graph = import_bytes(export_bytes(original, {.half_precision = true}), {});
  std::vector<float> rounded = original.find_value("w")->constant->to_floats();
  for (float& v : rounded) v = ir::half_to_float(ir::float_to_half(v));
  EXPECT_EQ(graph.find_value("w")->constant->to_floats(), rounded);
  EXPECT_EQ(graph.outputs()[0]->name, "y");
}

TEST(Narrow, AWeightThatHalfDoesNotReachIsNamed) {
  const ir::Graph graph = narrow_network(70000.0f);
  EXPECT_THAT([&] { export_bytes(graph, {.half_precision = true}); },
              ThrowsMessage<UserError>(HasSubstr("constant 'w' has 70000")));
}

}  // namespace
}  // namespace octet::onnx
