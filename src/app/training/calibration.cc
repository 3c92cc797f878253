#include "app/training/calibration.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "passes/equalize_channels.h"
#include "passes/pipelines.h"
#include "passes/shift_biases.h"
#include "report/progress.h"
#include "tasks/image_graph.h"
#include "train/adaround.h"
#include "train/bias_correction.h"
#include "train/observe.h"

namespace octet::app {
namespace {

void round_weights(ir::Graph& graph, data::Loader& loader, const quant::AdaRoundOptions& options) {
  ir::Graph images = tasks::image_graph(graph);
  int64_t layers = 0;
  for (const auto& node : graph.nodes()) layers += train::rounds_adaptively(*node);
  report::Progress progress({.label = "adaptive rounding", .total = layers, .unit = "layers"});
  int64_t done = 0, weights = 0, moved = 0;
  double gain = 0;
  const auto rounded = train::round_adaptively(images, loader, options, [&](const train::RoundedLayer& layer) {
    progress.update(++done);
    weights += layer.weights, moved += layer.moved;
    if (layer.adaptive > 0) gain += 10 * std::log10(layer.nearest / layer.adaptive);
  });
  progress.finish();
  for (const train::RoundedLayer& layer : rounded)
    graph.find_value(layer.weight)->constant = images.find_value(layer.weight)->constant;
  log_info("rounded ", rounded.size(), " layers adaptively: ", moved, " of ", weights,
           " weights go to another code than the nearest, and the error of a layer's results falls by ",
           done > 0 ? gain / static_cast<double>(done) : 0, " dB on average");
}

void correct_biases(ir::Graph& graph, data::Loader& loader, train::Communicator& communicator) {
  report::Progress progress({.label = "bias correction", .total = loader.images_per_epoch()});
  const auto corrections = train::bias_corrections(
      tasks::image_graph(graph), loader, [&](int64_t done) { progress.update(done * communicator.size()); },
      communicator);
  progress.finish();
  log_info("corrected the biases of ", passes::shift_biases(graph, corrections), " nodes");
  passes::run_pipeline(graph, passes::deployment_passes());  // onto the accumulator's grid
}

// What equalization asks about Clips: of the network as its pass will see it.
std::map<std::string, float> peaks_at_clips(const ir::Graph& graph, data::Loader& loader,
                                            train::Communicator& communicator) {
  ir::Graph prepared = graph.clone();
  passes::run_pipeline(prepared, passes::preparation_passes(/*keep_dropout=*/true));
  const std::vector<std::string> tensors = passes::clipped_tensors(prepared);
  std::map<std::string, float> peaks;
  if (tensors.empty()) return peaks;
  report::Progress progress({.label = "ranges in front of clips", .total = loader.images_per_epoch()});
  const quant::CalibrationSet observed = train::observe_tensors(
      tasks::image_graph(prepared), tensors, loader, [&](int64_t done) { progress.update(done * communicator.size()); },
      communicator);
  progress.finish();
  for (const auto& [name, range] : observed.ranges()) peaks[name] = range.max;
  return peaks;
}

}  // namespace

constexpr int kHistogramParts = 64;

quant::CalibrationSet calibrate(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options,
                                const std::filesystem::path& dump_passes, train::Communicator& communicator) {
  std::map<std::string, float> peaks;
  if (options.equalize == quant::Equalization::kUnreached) peaks = peaks_at_clips(graph, loader, communicator);
  const std::vector<passes::PassResult> before =
      passes::run_pipeline(graph, passes::placement_passes(options, peaks), {.dump_directory = dump_passes});
  const int placed = before.back().changes;
  if (placed == 0)
    fail("there is nothing to quantize: the network has no convolution, product, sum or pooling",
         options.placement.exclude.empty() ? "" : " that is not excluded",
         "; octet compile takes the float model as it is");
  log_info("placed ", placed, " quantizers");
  report::Progress progress({.label = "calibration", .total = loader.images_per_epoch()});
  quant::CalibrationSet observed = train::observe_activations(
      tasks::image_graph(graph), loader, [&](int64_t done) { progress.update(done * communicator.size()); },
      communicator);
  progress.finish();
  passes::run_pipeline(graph, passes::scale_passes(observed.ranges(options.calibration), options.weights),
                       {.dump_directory = dump_passes, .passes_before = before.size()});
  if (options.adaround.iterations > 0) {
    if (communicator.size() > 1)
      fail_usage("quant.adaround: rounds weights in one process; leave out the workers, or its iterations");
    round_weights(graph, loader, options.adaround);
  }
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
