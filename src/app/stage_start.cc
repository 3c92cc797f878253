#include "app/stage_start.h"

#include <algorithm>

#include "app/network_file.h"
#include "base/error.h"
#include "ir/infer.h"
#include "ir/verify.h"
#include "models/freeze.h"
#include "passes/pipelines.h"
#include "schema/tree.h"
#include "tasks/image_graph.h"

namespace octet::app {

using spec::Stage;

bool has_quantizers(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const auto& n) { return n->kind == ir::OpKind::kFakeQuantize; });
}

std::string starting_file(const spec::ExperimentSpec& spec, Stage stage, const std::string& model) {
  if (!model.empty()) return model;
  return stage == Stage::kFloat || spec.model.load_graph ? spec.model.pretrained : "";
}

std::vector<std::string> keys_of_network(const std::string& model, const std::vector<ir::InputShape>& shapes) {
  std::vector<std::string> keys = {"model.pretrained=" + schema::yaml_text(model), "model.load_graph=true"};
  const ir::Graph graph = read_network(model, shapes);
  const data::NetworkInput input = tasks::image_input(graph);
  if (input.channels > 0 && input.height > 0 && input.width > 0)
    keys.push_back(str("model.input=[", input.channels, ", ", input.height, ", ", input.width, "]"));
  return keys;
}

void check_start(ir::Graph& graph, const spec::ExperimentSpec& spec, Stage stage, const std::string& file) {
  models::freeze(graph, spec.model);
  ir::infer_shapes(graph);
  ir::verify(graph);
  ir::check_finite_constants(graph);
  spec.task->check(tasks::signature_of(graph), spec.model.num_classes);
  require_sizes(tasks::signature_of(graph), spec.model, file);
  data::require_fit(tasks::image_input(graph), spec.model.channels(), spec.model.height(), spec.model.width());
  if (stage != Stage::kCalibration && tasks::images_at_a_time(graph) > 0)
    fail_usage(
        file, ": input '", graph.inputs()[0]->name, "' is ", ir::type_string(graph.inputs()[0]->type),
        ", and the network does not treat the images of another batch each by itself; export it with a free batch to "
        "train it");
  if (stage != Stage::kQat && has_quantizers(graph))
    fail_usage(file, ": holds quantizers; stage ", spec::stage_name(stage), " starts from a float model");
}

ir::Graph network_to_calibrate(const spec::ExperimentSpec& spec, const std::string& model) {
  const std::string file = starting_file(spec, Stage::kCalibration, model);
  if (file.empty())
    fail_usage("stage calibration goes on from a model: name it with -m, or with model.pretrained and ",
               "model.load_graph (the model of stage float)");
  ir::Graph graph = load_network(file, ir::parse_input_shapes(spec.model.input_shape));
  passes::run_pipeline(graph, passes::training_passes());
  check_start(graph, spec, Stage::kCalibration, file);
  return graph;
}

void mark_calibrated(ir::Graph& graph, const spec::ExperimentSpec& spec) {
  graph.metadata["octet.stage"] = spec::stage_name(Stage::kCalibration);
  graph.metadata["octet.spec_hash"] = spec::spec_hash(spec, Stage::kCalibration);
}

}  // namespace octet::app
