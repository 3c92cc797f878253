// Every operator of the table can be written and read again, in each opset that Octet writes.
// OCTET_ONNX_DUMP=DIR keeps the files, for onnx.checker and ONNX Runtime.
#include <gtest/gtest.h>

#include <cstdlib>

#include "onnx/export.h"
#include "onnx/graph_compare.h"
#include "onnx/import.h"
#include "support/one_node.h"

namespace octet::onnx {
namespace {

using ir::Graph;
using ir::OpKind;
using octet::testing::makers;
using octet::testing::OneNode;

class EveryOp : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryOp, IsWrittenAndReadAgain) {
  const OpKind kind = ir::find_op(GetParam())->kind;
  const auto maker = makers().find(kind);
  ASSERT_NE(maker, makers().end()) << GetParam() << " is new: give it a line here";
  OneNode one(kind);
  maker->second(one);
  const Graph& graph = one.graph();
  for (const int opset : {13, 19, 20, 21}) {
    const std::string bytes = export_bytes(graph, {.opset = opset});
    if (const char* folder = std::getenv("OCTET_ONNX_DUMP"))
      export_model(graph, str(folder, "/", GetParam(), "_", opset, ".onnx"), {.opset = opset});
    const Graph back = import_bytes(bytes, {});
    if (opset >= (kind == OpKind::kGelu ? 20 : 19)) {
      EXPECT_EQ(first_difference(graph, back), "") << "opset " << opset;
    } else {  // another form where the old opset needs one; the same interface
      ASSERT_EQ(back.outputs().size(), graph.outputs().size());
      for (size_t i = 0; i < graph.outputs().size(); ++i) EXPECT_EQ(back.outputs()[i]->type, graph.outputs()[i]->type);
    }
  }
}

std::vector<std::string> every_op() {
  std::vector<std::string> out;
  for (const ir::OpInfo& info : ir::all_ops()) out.push_back(info.name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, ::testing::ValuesIn(every_op()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace octet::onnx
