// From a spec to what the training layers take. Only in builds with LibTorch.
#pragma once
#include <filesystem>
#include <string>

#include "ir/graph.h"
#include "spec/experiment.h"
#include "train/executor.h"
#include "train/trainer.h"

namespace octet::cli {

// The precision that `auto` means on this machine, or the one that is named. UserError for bf16 on a device without it is
// left to the executor; on a CPU without fast BF16 a warning says that fp32 would be quicker.
train::Precision training_precision(const spec::TrainSpec& schedule);

train::ExecutorOptions executor_options(const spec::ExperimentSpec& spec, const spec::TrainSpec& schedule);

// Everything but the loader and the fingerprint, for a stage that trains. Stage control is always fp32: it is the honest float control.
train::TrainerOptions trainer_options(const spec::ExperimentSpec& spec, spec::Stage stage,
                                      const std::filesystem::path& results);

// The network that a stage starts from: `model` (the file given by -m; for stage float it may be empty: then
// model.pretrained or fresh weights). Shapes are inferred, constants checked for NaN, trainable constants marked.
// UserError (exit 2) when the file does not fit the stage (no quantisers for qat, quantisers for control).
ir::Graph starting_network(const spec::ExperimentSpec& spec, spec::Stage stage, const std::string& model);

}  // namespace octet::cli
