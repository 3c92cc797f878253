// From a spec to what the training layers take. Only in builds with LibTorch.
#pragma once
#include <filesystem>
#include <string>

#include "ir/graph.h"
#include "spec/experiment.h"
#include "train/trainer.h"

namespace octet::app {

// Everything but the loader and the fingerprint, for a stage that trains. Stage control is always fp32: it is the
// honest float control.
train::TrainerOptions trainer_options(const spec::ExperimentSpec& spec, spec::Stage stage,
                                      const std::filesystem::path& results);

// The network that a stage starts from: `model` (the file given by -m; for stage float it may be empty: then
// model.pretrained or fresh weights). Shapes are inferred, constants checked for NaN, trainable constants marked.
// UserError (exit 2) when the file does not fit the stage (no quantizers for qat, quantizers for control).
ir::Graph starting_network(const spec::ExperimentSpec& spec, spec::Stage stage, const std::string& model);

}  // namespace octet::app
