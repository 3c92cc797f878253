#include "app/network_file.h"

#include "base/error.h"
#include "base/log.h"
#include "ir/infer.h"
#include "ir/verify.h"
#include "onnx/import.h"
#include "passes/free_batch.h"

namespace octet::app {
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

}  // namespace

ir::Graph read_network(const std::string& path, const std::vector<ir::InputShape>& shapes) {
  ir::Graph graph = onnx::import_model(path, {.input_shapes = shapes});
  ir::infer_shapes(graph);
  for (const ir::InputShape& said : shapes) set_said_batch(graph, path, said);
  ir::verify(graph);
  return graph;
}

ir::Graph load_network(const std::string& path, const std::vector<ir::InputShape>& shapes) {
  ir::Graph graph = read_network(path, shapes);
  ir::check_finite_constants(graph);
  return graph;
}

void require_sizes(const tasks::Signature& network, const models::ModelOptions& said, const std::string& file) {
  if (network.inputs.size() != 1) return;
  const tasks::Port& input = network.inputs[0];
  const data::NetworkInput image = tasks::image_input(network);
  if (image.nhwc)
    log_info(file, ": input '", input.name, "' is ", ir::type_string(input.type),
             ", with the channels last; images are fed to it so");
  if (!said.input_unsaid) return;
  if (image.channels >= 0 && image.height >= 0 && image.width >= 0) return;
  const std::string flag = ir::advised_input_shape(input.name, *input.type.shape, /*with_name=*/false);
  fail_usage(file, ": input '", input.name, "' is ", ir::type_string(input.type),
             ", and nothing says the size of its images; give it, as in ", flag,
             " (in an experiment model.input_shape; model.input alone leaves the sizes of the file open)");
}

}  // namespace octet::app
