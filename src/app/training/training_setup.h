// From a spec to what the training layers take. Only in builds with LibTorch.
#pragma once
#include <filesystem>
#include <string>

#include "app/stage_start.h"
#include "ir/graph.h"
#include "quant/observer.h"
#include "spec/experiment.h"
#include "train/trainer.h"

namespace octet::app {

// Everything but the loader and the fingerprint, for a stage that trains. Stage control has the precision of stage qat,
// so that quantization is all in which the two differ.
train::TrainerOptions trainer_options(const spec::ExperimentSpec& spec, spec::Stage stage,
                                      const std::filesystem::path& results);

// The part of every epoch that a rank has.
data::Share share_of(const train::Communicator& communicator);

// The network that a stage starts from: that of the file, or for stage float a new one, with the weights of
// model.pretrained where there are some. Shapes are inferred, constants checked for NaN, trainable constants marked.
// UserError (exit 2) when the file does not fit the stage (quantizers where it trains in float).
ir::Graph starting_network(const spec::ExperimentSpec& spec, spec::Stage stage, const std::string& model);

// Makes the float `graph` the quantized one that stage qat begins with, by the experiment's images. As calibrate() of
// calibration.h, whose result it gives.
quant::CalibrationSet calibrate_network(ir::Graph& graph, const spec::ExperimentSpec& spec,
                                        train::Communicator& communicator = train::single_process());

}  // namespace octet::app
