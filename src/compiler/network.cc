#include "compiler/network.h"

#include "base/error.h"
#include "ir/infer.h"
#include "ir/verify.h"
#include "onnx/import.h"
#include "passes/free_batch.h"

namespace octet::compiler {
namespace {

// Where the file has another batch than a shape says.
void set_said_batch(ir::Graph& graph, const std::string& path, const ir::InputShape& said) {
  const int64_t batch = said.shape.empty() ? ir::kDynamic : said.shape[0];
  const ir::Value* input = said.name.empty() ? graph.inputs()[0] : graph.find_value(said.name);
  if (batch == ir::kDynamic || batch == input->type.shape->at(0)) return;
  if (graph.inputs().size() != 1)
    fail_usage(path, ": input '", input->name, "' is ", ir::type_string(input->type), ", and --input-shape ",
               ir::input_shape_text(said), " wants ", batch, " for its batch, which a network of several inputs keeps");
  passes::require_batch(graph, batch);
  ir::set_batch(graph, batch);
}

ir::Graph with_shapes(ir::Graph graph, const std::string& name, const std::vector<ir::InputShape>& shapes) {
  if (shapes.empty()) return graph;
  ir::infer_shapes(graph);
  for (const ir::InputShape& said : shapes) set_said_batch(graph, name, said);
  ir::verify(graph);
  return graph;
}

}  // namespace

ir::Graph read_network(const std::string& path, const std::vector<ir::InputShape>& shapes) {
  return with_shapes(onnx::import_model(path, {.input_shapes = shapes}), path, shapes);
}

ir::Graph read_network_bytes(std::string_view bytes, const std::string& name,
                             const std::vector<ir::InputShape>& shapes) {
  return with_shapes(onnx::import_bytes(bytes, {}, {.input_shapes = shapes}), name, shapes);
}

}  // namespace octet::compiler
