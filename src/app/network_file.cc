#include "app/network_file.h"

#include "base/error.h"
#include "base/log.h"
#include "compiler/network.h"
#include "ir/verify.h"

namespace octet::app {

ir::Graph read_network(const std::string& path, const std::vector<ir::InputShape>& shapes) {
  return compiler::read_network(path, shapes);
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
