// The network that a stage of an experiment starts from, as far as that needs no LibTorch.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/input_shape.h"
#include "spec/experiment.h"

namespace octet::app {

bool has_quantizers(const ir::Graph& graph);

// The file that a stage starts from: `model`, that of -m, or model.pretrained where it is the network itself
// (load_graph) or the stage is float. Empty: none.
std::string starting_file(const spec::ExperimentSpec& spec, spec::Stage stage, const std::string& model);

// What an experiment says that takes the network of the ONNX file `model` as it is, and not one of the zoo: KEY=VALUE
// of model.pretrained and model.load_graph and, where file or `shapes` say it, of the size of its images.
std::vector<std::string> keys_of_network(const std::string& model, const std::vector<ir::InputShape>& shapes);

// Infers shapes, marks frozen constants, and checks that `graph`, that of `file` (empty: a new one), fits experiment
// and stage. UserError (exit 2) where it does not (quantizers where a stage wants a float model).
void check_start(ir::Graph& graph, const spec::ExperimentSpec& spec, spec::Stage stage, const std::string& file);

// The float network of the ONNX file that stage calibration starts from. UserError as above.
ir::Graph network_to_calibrate(const spec::ExperimentSpec& spec, const std::string& model);

// Notes in the metadata what `graph` is now.
void mark_calibrated(ir::Graph& graph, const spec::ExperimentSpec& spec);

}  // namespace octet::app
