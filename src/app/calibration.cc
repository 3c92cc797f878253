#include "app/calibration.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "app/batch_norm_correction.h"
#include "app/bias_correction.h"
#include "app/engine_observer.h"
#include "app/method_choice.h"
#include "app/range_advice.h"
#include "base/error.h"
#include "base/log.h"
#include "passes/equalize_channels.h"
#include "passes/pipelines.h"
#include "passes/quantize_program.h"
#include "report/progress.h"

namespace octet::app {
namespace {

// What equalization asks about Clips: of the network as its pass will see it.
std::map<std::string, float> peaks_at_clips(const ir::Graph& graph, data::Loader& loader, const Observe& observe) {
  ir::Graph prepared = graph.clone();
  passes::run_pipeline(prepared, passes::preparation_passes(/*keep_dropout=*/true));
  const std::vector<std::string> tensors = passes::clipped_tensors(prepared);
  std::map<std::string, float> peaks;
  if (tensors.empty()) return peaks;
  report::Progress progress({.label = "ranges in front of clips", .total = loader.images_per_epoch()});
  const quant::CalibrationSet observed = observe(
      prepared, tensors, loader, [&](int64_t done) { progress.update(done); }, false);
  progress.finish();
  for (const auto& [name, range] : observed.ranges()) peaks[name] = range.max;
  return peaks;
}

constexpr int kHistogramParts = 64;

}  // namespace

quant::CalibrationSet observe_by_engine(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                        data::Loader& loader, const std::function<void(int64_t)>& progress,
                                        bool peaks) {
  EngineObservation seen = observe_with_engine(graph, tensors, loader, progress, 0, peaks);
  require(seen.images > 0, "there is no image to calibrate with");
  return std::move(seen.observers);
}

quant::CalibrationSet calibrate(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options,
                                const std::filesystem::path& dump_passes, const Observe& observe) {
  std::map<std::string, float> peaks;
  if (options.equalize == quant::Equalization::kUnreached) peaks = peaks_at_clips(graph, loader, observe);
  const BatchNormCorrection correction(graph, options);
  passes::PlacementRecord placement;
  const std::vector<passes::PassResult> before = passes::run_pipeline(
      graph, passes::placement_passes(options, peaks, &placement), {.dump_directory = dump_passes});
  const int placed = before.back().changes;
  if (placed == 0)
    fail("there is nothing to quantize: the network has no convolution, product, sum or pooling",
         options.placement.exclude.empty() ? "" : " that is not excluded",
         "; octet compile takes the float model as it is");
  log_info("placed ", placed, " quantizers");
  report::Progress progress({.label = "calibration", .total = loader.images_per_epoch()});
  quant::CalibrationSet observed = observe(
      graph, passes::quantized_program_tensors(graph, options.placement), loader,
      [&](int64_t done) { progress.update(done); }, with_layers(options.calibration, placement.layers).need_peaks());
  progress.finish();
  observed.set_layers(placement.layers);
  MethodChoice choice{options.calibration, with_layers(options.weights, placement.layers)};
  if (options.calibration.method == quant::CalibrationMethod::kSqnr)
    choice = choose_method(
        graph, observed, choice, loader,
        /*may_correct=*/options.bias_correction == quant::BiasCorrection::kNo && !options.rounds_by_results());
  observed.settle(choice.activations);
  const quant::WeightCalibrationOptions& weights = choice.weights;
  const std::map<std::string, quant::Range> ranges = observed.ranges(options.calibration);
  passes::run_pipeline(graph, passes::scale_passes(ranges, weights),
                       {.dump_directory = dump_passes, .passes_before = before.size()});
  if (!choice.bias_shifts.empty()) apply_corrections(graph, choice.bias_shifts);
  correction.apply(graph, placement);
  if (const std::string advice = asymmetry_advice(graph, ranges, options); !advice.empty()) log_info(advice);
  if (const int behind = passes::quantize_program(graph, ranges, options.placement, weights))
    log_info("placed ", behind, " quantizers behind the plan");
  return observed;
}

std::map<std::string, quant::Range> measure_ranges(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                                   data::Loader& loader, const quant::CalibrationOptions& options,
                                                   const Observe& observe) {
  report::Progress progress({.label = "measuring", .total = loader.images_per_epoch()});
  const quant::CalibrationSet observed = observe(
      graph, tensors, loader, [&](int64_t done) { progress.update(done); }, options.need_peaks());
  progress.finish();
  return observed.ranges(options);
}

nlohmann::ordered_json calibration_json(const quant::CalibrationSet& observed,
                                        const quant::CalibrationOptions& of_spec) {
  const quant::CalibrationOptions& options = observed.settled(of_spec);
  const std::map<std::string, quant::Range> ranges = observed.ranges(options);
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const quant::TensorComparison& tensor : observed.compare()) {
    const quant::Range& chosen = ranges.at(tensor.tensor);
    nlohmann::ordered_json methods = nlohmann::ordered_json::array();
    for (const quant::MethodResult& m : tensor.methods)
      methods.push_back({{"method", m.method},
                         {"amax", m.amax},
                         {"scale", m.scale},
                         {"clipped_fraction", m.clipped_fraction},
                         {"sqnr_db", m.sqnr_db}});
    tensors.push_back(
        {{"tensor", tensor.tensor},
         {"min", tensor.min},
         {"max", tensor.max},
         {"amax", chosen.amax},
         {"clipped_fraction", chosen.clipped_fraction},
         {"count", tensor.count},
         {"zeros", tensor.zeros},
         {"histogram", quant::magnitudes(observed.observers().at(tensor.tensor).histogram(), kHistogramParts)},
         {"methods", methods}});
  }
  return {
      {"method", schema::enum_name(options.method)}, {"memory_bytes", observed.memory_bytes()}, {"tensors", tensors}};
}

}  // namespace octet::app
