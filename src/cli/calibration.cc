#include "cli/calibration.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "passes/pipelines.h"
#include "report/progress.h"
#include "tasks/calibrate.h"

namespace octet::cli {
namespace {

quant::PlacementRule placement_rule(spec::PlacementRule rule) {
  switch (rule) {
    case spec::PlacementRule::kAuto: return quant::PlacementRule::kAuto;
    case spec::PlacementRule::kResNetV1: return quant::PlacementRule::kResNetV1;
    case spec::PlacementRule::kResNetV2: return quant::PlacementRule::kResNetV2;
    case spec::PlacementRule::kMobileNet: return quant::PlacementRule::kMobileNet;
    case spec::PlacementRule::kEfficientNet: return quant::PlacementRule::kEfficientNet;
    case spec::PlacementRule::kInception: return quant::PlacementRule::kInception;
  }
  return quant::PlacementRule::kAuto;
}

}  // namespace

quant::PlacementOptions placement_options(const spec::ExperimentSpec& spec) {
  quant::PlacementOptions o;
  o.rules.clear();
  for (spec::PlacementRule rule : spec.quant.rules) o.rules.push_back(placement_rule(rule));
  for (const spec::Exclusion& e : spec.quant.exclude) o.exclude.push_back({e.name, e.op});
  o.unsigned_activations = spec.quant.activations.unsigned_range == spec::UnsignedActivations::kAuto;
  return o;
}

quant::CalibrationOptions calibration_options(const spec::ExperimentSpec& spec) {
  quant::CalibrationOptions o;
  switch (spec.quant.calibration.method) {
    case spec::CalibrationMethod::kMax: o.method = quant::CalibrationMethod::kMax; break;
    case spec::CalibrationMethod::kMse: o.method = quant::CalibrationMethod::kMse; break;
    case spec::CalibrationMethod::kPercentile: o.method = quant::CalibrationMethod::kPercentile; break;
    case spec::CalibrationMethod::kEntropy: o.method = quant::CalibrationMethod::kEntropy; break;
  }
  o.percentile = spec.quant.calibration.percentile;
  return o;
}

quant::WeightCalibrationOptions weight_options(const spec::ExperimentSpec& spec) {
  quant::WeightCalibrationOptions o;
  o.method = spec.quant.weights.method == spec::WeightMethod::kMse ? quant::WeightMethod::kMse : quant::WeightMethod::kMax;
  return o;
}

quant::CalibrationSet calibrate(ir::Graph& graph, data::Loader& loader, const quant::PlacementOptions& placement,
                                const quant::CalibrationOptions& calibration,
                                const quant::WeightCalibrationOptions& weights) {
  const int placed = passes::run_pipeline(graph, passes::placement_passes(placement)).back().changes;
  if (placed == 0)
    fail("there is nothing to quantise: the network has no convolution, product, sum or pooling",
         placement.exclude.empty() ? "" : " that is not excluded", "; octet compile takes the float model as it is");
  log_info("placed ", placed, " quantisers");
  report::Progress progress({.label = "calibration", .total = loader.images_per_epoch()});
  quant::CalibrationSet observed =
      tasks::observe_activations(graph, loader, [&](int64_t done) { progress.update(done); });
  progress.finish();
  passes::run_pipeline(graph, passes::scale_passes(observed.ranges(calibration), weights));
  return observed;
}

nlohmann::ordered_json calibration_json(const quant::CalibrationSet& observed,
                                        const quant::CalibrationOptions& options) {
  const std::map<std::string, quant::Range> ranges = observed.ranges(options);
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const quant::TensorComparison& tensor : observed.compare()) {
    const quant::Range& chosen = ranges.at(tensor.tensor);
    nlohmann::ordered_json methods = nlohmann::ordered_json::array();
    for (const quant::MethodResult& m : tensor.methods)
      methods.push_back({{"method", m.method}, {"amax", m.amax}, {"scale", m.scale},
                         {"clipped_fraction", m.clipped_fraction}, {"sqnr_db", m.sqnr_db}});
    tensors.push_back({{"tensor", tensor.tensor}, {"min", tensor.min}, {"max", tensor.max}, {"amax", chosen.amax},
                       {"clipped_fraction", chosen.clipped_fraction}, {"count", tensor.count}, {"zeros", tensor.zeros},
                       {"methods", methods}});
  }
  return {{"method", quant::calibration_method_name(options.method)}, {"memory_bytes", observed.memory_bytes()},
          {"tensors", tensors}};
}

}  // namespace octet::cli
