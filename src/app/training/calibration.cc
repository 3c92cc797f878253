#include "app/training/calibration.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/bias_correction.h"
#include "app/engine_observer.h"
#include "base/error.h"
#include "base/log.h"
#include "report/progress.h"
#include "tasks/image_graph.h"
#include "train/adaround.h"
#include "train/bias_correction.h"
#include "train/calibration_run.h"
#include "train/gptq.h"
#include "train/observe.h"
#include "train/torch_runtime.h"

namespace octet::app {
namespace {

void round_weights(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options) {
  ir::Graph images = tasks::image_graph(graph);
  int64_t layers = 0;
  for (const auto& node : graph.nodes()) layers += train::rounds_by_results(*node);
  const bool by_gptq = options.gptq.images > 0;
  report::Progress progress({.label = by_gptq ? "GPTQ" : "adaptive rounding", .total = layers, .unit = "layers"});
  int64_t done = 0, weights = 0, moved = 0;
  double gain = 0;
  const auto tell = [&](const train::RoundedLayer& layer) {
    progress.update(++done);
    weights += layer.weights, moved += layer.moved;
    if (layer.rounded > 0) gain += 10 * std::log10(layer.nearest / layer.rounded);
  };
  const std::vector<train::RoundedLayer> rounded =
      by_gptq ? train::round_by_gptq(images, loader, options.gptq, tell)
              : train::round_adaptively(images, loader, options.adaround, tell);
  progress.finish();
  for (const train::RoundedLayer& layer : rounded)
    graph.find_value(layer.weight)->constant = images.find_value(layer.weight)->constant;
  log_info("rounded ", rounded.size(), " layers ", by_gptq ? "by GPTQ: " : "adaptively: ", moved, " of ", weights,
           " weights go to another code than the nearest, and the error of a layer's results falls by ",
           done > 0 ? gain / static_cast<double>(done) : 0, " dB on average");
}

bool same_values(const ir::Tensor& a, const ir::Tensor& b) {
  return a.shape() == b.shape() && std::ranges::equal(a.bytes(), b.bytes());
}

// Of `node`, which rounds_by_results, those that the node of this name in `from` has on the same scales.
void take_weights(const ir::Node& node, const ir::Graph& from) {
  const ir::Node* there = from.find_node(node.name);
  if (!there || !train::rounds_by_results(*there)) return;
  const ir::Node &mine = *node.input(1)->producer, &theirs = *there->input(1)->producer;
  if (mine.input(0)->constant->shape() == theirs.input(0)->constant->shape() &&
      same_values(*mine.input(1)->constant, *theirs.input(1)->constant))
    mine.input(0)->constant = theirs.input(0)->constant;
}

// By the engine, so that every program and any number of workers find the same.
void correct_biases(ir::Graph& graph, data::Loader& loader, train::Communicator& communicator) {
  report::Progress progress({.label = "bias correction", .total = loader.images_per_epoch()});
  const auto of_all = [&](int64_t done) { progress.update(done * communicator.size()); };
  std::map<std::string, std::vector<double>> shifts;
  try {
    BiasCorrections found = bias_corrections(graph, loader, {.threads = train::torch_threads(), .progress = of_all});
    train::share_corrections(found.shifts, found.images, communicator);
    shifts = std::move(found.shifts);
  } catch (const EngineCannotRun& e) {
    log_debug("the engine cannot run the quantized network, so LibTorch corrects its biases: ", e.what());
    shifts = train::bias_corrections(tasks::image_graph(graph), loader, of_all, communicator);
  }
  progress.finish();
  apply_corrections(graph, shifts);
  log_info("corrected the biases of ", shifts.size(), " nodes");
}

}  // namespace

Observe observe_on(train::Communicator& communicator, bool by_libtorch) {
  return [&communicator, by_libtorch](const ir::Graph& graph, const std::vector<std::string>& tensors,
                                      data::Loader& loader, const std::function<void(int64_t)>& progress, bool peaks) {
    if (peaks && communicator.size() > 1)
      fail_usage(
          "quant.calibration.method: ema averages over the images in their order, which several processes do not "
          "have; calibrate in one, or by another method");
    const auto of_all = [&](int64_t done) { progress(done * communicator.size()); };
    // What lies behind the plan, only the engine sees, and how often each process of several got there is not shared.
    std::vector<std::string> of_graph = tensors;
    std::erase_if(of_graph, [&](const std::string& tensor) { return !graph.find_value(tensor); });
    if (by_libtorch)
      return train::observe_tensors(tasks::image_graph(graph), of_graph, loader, of_all, communicator, peaks);
    try {
      EngineObservation seen = observe_with_engine(graph, communicator.size() > 1 ? of_graph : tensors, loader, of_all,
                                                   train::torch_threads(), peaks);
      train::share_observations(seen.observers, seen.images, communicator);
      require(seen.images > 0, "there is no image to calibrate with");
      return std::move(seen.observers);
    } catch (const EngineCannotRun& e) {
      log_debug("the engine cannot run the float network, so LibTorch does: ", e.what());
    }
    return train::observe_tensors(tasks::image_graph(graph), of_graph, loader, of_all, communicator, peaks);
  };
}

quant::CalibrationSet calibrate(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options,
                                const std::filesystem::path& dump_passes, train::Communicator& communicator,
                                bool by_libtorch) {
  if (options.rounds_by_results() && communicator.size() > 1)
    fail_usage("quant.", options.gptq.images > 0 ? "gptq" : "adaround",
               ": rounds weights in one process; leave out the workers, or this key");
  if (options.calibration.method == quant::CalibrationMethod::kSqnr && communicator.size() > 1)
    fail_usage(
        "quant.calibration.method: sqnr runs quantized networks in one process; leave out the workers, or name "
        "another method");
  quant::CalibrationSet observed =
      calibrate(graph, loader, options, dump_passes, observe_on(communicator, by_libtorch));
  if (options.rounds_by_results()) round_weights(graph, loader, options);
  if (options.bias_correction == quant::BiasCorrection::kEmpirical) correct_biases(graph, loader, communicator);
  return observed;
}

void calibrate_as(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options,
                  const ir::Graph& rounded) {
  calibrate(graph, loader, options, {}, observe_on());
  for (const auto& node : graph.nodes())
    if (train::rounds_by_results(*node)) take_weights(*node, rounded);
  if (options.bias_correction == quant::BiasCorrection::kEmpirical)
    correct_biases(graph, loader, train::single_process());
}

}  // namespace octet::app
