#include "cli/network_file.h"

#include "base/error.h"
#include "ir/infer.h"
#include "ir/verify.h"
#include "onnx/import.h"

namespace octet::cli {

ir::Graph load_network(const std::string& path) {
  ir::Graph graph = onnx::import_model(path);
  ir::infer_shapes(graph);
  ir::verify(graph);
  ir::check_finite_constants(graph);
  return graph;
}

data::NetworkInput image_input(const ir::Graph& graph) {
  if (graph.inputs().size() != 1)
    fail_usage("the network has ", graph.inputs().size(), " inputs; images are fed to networks with one");
  const ir::Value* input = graph.inputs()[0];
  if (input->type.data_type != ir::DataType::kFloat32 || !input->type.shape)
    fail_usage("input '", input->name, "' is ", ir::type_string(input->type),
               "; images are fed to float inputs of the form [N, C, H, W] or [N, H, W, C]");
  return data::read_network_input(input->name, *input->type.shape);
}

}  // namespace octet::cli
