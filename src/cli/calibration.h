// Quantization after training, as far as this program can: ranges come from the engine in both, what else there is
// needs LibTorch.
#pragma once
#include <filesystem>

#include "app/accuracy_goal.h"
#include "app/calibration.h"
#include "cli/open_model.h"

namespace octet::cli {

// app::calibrate with all that `options` ask for; the float network is run by the engine, unless LibTorch is asked to.
// NeedsTraining where any of that takes LibTorch, and for a network that the engine cannot run.
quant::CalibrationSet calibrate(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options,
                                const std::filesystem::path& dump_passes, Runtime runtime = Runtime::kAuto);

// For app::measure_ranges; throws as calibrate() does.
app::Observe observer();

// app::reach_accuracy, or NeedsTraining.
app::AccuracySearch reach_accuracy(const ir::Graph& network, const spec::ExperimentSpec& spec,
                                   const quant::QuantOptions& options, const app::AccuracyGoal& goal);

}  // namespace octet::cli
