#include "app/training/calibration.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "passes/pipelines.h"
#include "passes/shift_biases.h"
#include "report/progress.h"
#include "tasks/image_graph.h"
#include "train/bias_correction.h"
#include "train/observe.h"

namespace octet::app {
namespace {

void correct_biases(ir::Graph& graph, data::Loader& loader, train::Communicator& communicator) {
  report::Progress progress({.label = "bias correction", .total = loader.images_per_epoch()});
  const auto corrections = train::bias_corrections(
      tasks::image_graph(graph), loader, [&](int64_t done) { progress.update(done * communicator.size()); },
      communicator);
  progress.finish();
  log_info("corrected the biases of ", passes::shift_biases(graph, corrections), " nodes");
  passes::run_pipeline(graph, passes::deployment_passes());  // onto the accumulator's grid
}

}  // namespace

quant::CalibrationSet calibrate(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options,
                                const std::filesystem::path& dump_passes, train::Communicator& communicator) {
  const std::vector<passes::PassResult> before =
      passes::run_pipeline(graph, passes::placement_passes(options), {.dump_directory = dump_passes});
  const int placed = before.back().changes;
  if (placed == 0)
    fail("there is nothing to quantize: the network has no convolution, product, sum or pooling",
         options.placement.exclude.empty() ? "" : " that is not excluded",
         "; octet compile takes the float model as it is");
  for (const passes::PassResult& pass : before)
    if (pass.name == "equalize_channels") log_info("equalized the channels of ", pass.changes, " pairs of layers");
  log_info("placed ", placed, " quantizers");
  report::Progress progress({.label = "calibration", .total = loader.images_per_epoch()});
  quant::CalibrationSet observed = train::observe_activations(
      tasks::image_graph(graph), loader, [&](int64_t done) { progress.update(done * communicator.size()); },
      communicator);
  progress.finish();
  passes::run_pipeline(graph, passes::scale_passes(observed.ranges(options.calibration), options.weights),
                       {.dump_directory = dump_passes, .passes_before = before.size()});
  if (options.bias_correction) correct_biases(graph, loader, communicator);
  return observed;
}

std::map<std::string, quant::Range> measure_ranges(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                                   data::Loader& loader, const quant::CalibrationOptions& options) {
  report::Progress progress({.label = "measuring", .total = loader.images_per_epoch()});
  const quant::CalibrationSet observed =
      train::observe_tensors(tasks::image_graph(graph), tensors, loader, [&](int64_t done) { progress.update(done); });
  progress.finish();
  return observed.ranges(options);
}

nlohmann::ordered_json calibration_json(const quant::CalibrationSet& observed,
                                        const quant::CalibrationOptions& options) {
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
    tensors.push_back({{"tensor", tensor.tensor},
                       {"min", tensor.min},
                       {"max", tensor.max},
                       {"amax", chosen.amax},
                       {"clipped_fraction", chosen.clipped_fraction},
                       {"count", tensor.count},
                       {"zeros", tensor.zeros},
                       {"methods", methods}});
  }
  return {
      {"method", schema::enum_name(options.method)}, {"memory_bytes", observed.memory_bytes()}, {"tensors", tensors}};
}

}  // namespace octet::app
