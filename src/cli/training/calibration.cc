// Of the program with LibTorch.
#include "cli/calibration.h"

#include "app/training/accuracy_goal.h"
#include "app/training/calibration.h"
#include "train/torch_runtime.h"

namespace octet::cli {

app::Observe observer() {
  train::initialize_torch();
  return app::observe_on();
}

quant::CalibrationSet calibrate(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options,
                                const std::filesystem::path& dump_passes, Runtime runtime) {
  train::initialize_torch();
  return app::calibrate(graph, loader, options, dump_passes, train::single_process(), runtime == Runtime::kLibTorch);
}

app::AccuracySearch reach_accuracy(const ir::Graph& network, const spec::ExperimentSpec& spec,
                                   const quant::QuantOptions& options, const app::AccuracyGoal& goal) {
  train::initialize_torch();
  return app::reach_accuracy(network, spec, options, goal);
}

}  // namespace octet::cli
