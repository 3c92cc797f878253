// The network that a stage of an experiment starts from, as far as that needs no LibTorch.
#pragma once
#include <string>

#include "ir/graph.h"
#include "spec/experiment.h"

namespace octet::app {

bool has_quantizers(const ir::Graph& graph);

// The file that a stage starts from: `model`, that of -m, or model.pretrained where it is the network itself
// (load_graph) or the stage is float. Empty: none.
std::string starting_file(const spec::ExperimentSpec& spec, spec::Stage stage, const std::string& model);

// Infers shapes, marks frozen constants, and checks that `graph`, that of `file` (empty: a new one), fits experiment
// and stage. UserError (exit 2) where it does not (quantizers where a stage wants a float model).
void check_start(ir::Graph& graph, const spec::ExperimentSpec& spec, spec::Stage stage, const std::string& file);

// The float network of the ONNX file that stage calibration starts from. UserError as above.
ir::Graph network_to_calibrate(const spec::ExperimentSpec& spec, const std::string& model);

// Notes in the metadata what `graph` is now.
void mark_calibrated(ir::Graph& graph, const spec::ExperimentSpec& spec);

}  // namespace octet::app
