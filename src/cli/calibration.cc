// What the program without LibTorch can calibrate.
#include "cli/calibration.h"

#include "app/bias_correction.h"
#include "app/engine_observer.h"
#include "app/watched_plan.h"
#include "cli/other_program.h"

namespace octet::cli {

app::Observe observer() {
  return [](const ir::Graph& graph, const std::vector<std::string>& tensors, data::Loader& loader,
            const std::function<void(int64_t)>& progress, bool peaks) {
    try {
      return app::observe_by_engine(graph, tensors, loader, progress, peaks);
    } catch (const app::EngineCannotRun& e) {
      throw NeedsTraining(str("the engine cannot run this network for its ranges: ", e.what()));
    }
  };
}

quant::CalibrationSet calibrate(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options,
                                const std::filesystem::path& dump_passes, Runtime runtime) {
  if (runtime == Runtime::kLibTorch) throw NeedsTraining("--runtime libtorch");
  if (options.rounds_by_results())
    throw NeedsTraining(options.gptq.images > 0 ? "quant.gptq rounds weights by what their layers give"
                                                : "quant.adaround learns the rounding of weights");
  quant::CalibrationSet observed = app::calibrate(graph, loader, options, dump_passes, observer());
  try {
    if (options.bias_correction == quant::BiasCorrection::kEmpirical) app::correct_biases(graph, loader);
  } catch (const app::EngineCannotRun& e) {
    throw NeedsTraining(str("the engine cannot run the quantized network to correct its biases: ", e.what()));
  }
  return observed;
}

app::AccuracySearch reach_accuracy(const ir::Graph&, const spec::ExperimentSpec&, const quant::QuantOptions&,
                                   const app::AccuracyGoal&) {
  throw NeedsTraining(
      "--accuracy-drop, --latency-budget and --size-budget rank the layers by what their quantizers cost");
}

}  // namespace octet::cli
