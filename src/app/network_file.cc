#include "app/network_file.h"

#include "ir/infer.h"
#include "ir/verify.h"
#include "onnx/import.h"

namespace octet::app {

ir::Graph load_network(const std::string& path) {
  ir::Graph graph = onnx::import_model(path);
  ir::infer_shapes(graph);
  ir::verify(graph);
  ir::check_finite_constants(graph);
  return graph;
}

}  // namespace octet::app
