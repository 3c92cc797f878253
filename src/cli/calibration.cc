#include "cli/calibration.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "ir/infer.h"
#include "passes/pipeline.h"
#include "passes/place_fake_quant.h"
#include "passes/set_scales.h"
#include "passes/snap_biases.h"
#include "report/progress.h"
#include "tasks/image_graph.h"
#include "train/observe.h"

namespace octet::cli {
quant::CalibrationSet calibrate(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options) {
  // Dropout stays: stage qat goes on from here.
  for (const passes::PassResult& pass : passes::run_pipeline(graph, passes::preparation_passes(/*keep_dropout=*/true)))
    if (pass.changes > 0) log_debug(pass.name, ": ", pass.changes, " changes");
  const int placed = passes::place_fake_quant(graph, options.placement);
  ir::infer_shapes(graph);
  if (placed == 0)
    fail("there is nothing to quantise: the network has no convolution, product, sum or pooling",
         options.placement.exclude.empty() ? "" : " that is not excluded", "; octet compile takes the float model as it is");
  log_info("placed ", placed, " quantisers");
  report::Progress progress({.label = "calibration", .total = loader.images_per_epoch()});
  quant::CalibrationSet observed =
      train::observe_activations(tasks::image_graph(graph), loader, [&](int64_t done) { progress.update(done); });
  progress.finish();
  passes::set_scales(graph, observed.ranges(options.calibration), options.weights);
  passes::snap_biases(graph);
  ir::infer_shapes(graph);
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
  return {{"method", schema::enum_name(options.method)}, {"memory_bytes", observed.memory_bytes()},
          {"tensors", tensors}};
}

}  // namespace octet::cli
