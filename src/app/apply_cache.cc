#include "app/apply_cache.h"

#include <set>
#include <vector>

#include "app/batch_norm_correction.h"
#include "app/clean_network.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "ir/query.h"
#include "passes/pipelines.h"
#include "quant/fusion_model.h"
#include "quant/tensor_ranges.h"

namespace octet::app {
namespace {

// What the cache says of tensors of this graph, which has no quantizers, and what follows from it.
quant::TensorRanges matching_ranges(const ir::Graph& graph, const quant::CalibrationCache& cache,
                                    const std::string& name) {
  quant::TensorRanges ranges;
  std::vector<std::string> foreign, own;
  std::set<std::string> known;
  for (const ir::Value* value : quant::activations(graph)) {
    known.insert(value->name);
    if (const auto it = cache.scales.find(value->name); it != cache.scales.end())
      ranges[value->name] = {.scale = it->second};
    else
      own.push_back(value->name);
  }
  for (const auto& [tensor, scale] : cache.scales)
    if (!known.count(tensor)) foreign.push_back(tensor);
  if (ranges.empty())
    fail(name, ": none of its names is a tensor of the network: it has ", some_of(foreign), "; the network ",
         some_of(own), "; is the cache that of another network, or of another export of it?");
  log_info(name, ": ", ranges.size(), " of its ", cache.scales.size(), " ranges are of tensors of the network");
  if (!foreign.empty()) log_info(name, ": the network does not have ", some_of(foreign));
  if (!own.empty()) log_info(name, ": of the network it lacks ", some_of(own));
  quant::derive_ranges(graph, ranges);
  return ranges;
}

// Takes out the quantizers of tensors without a range, and those of weights whose product then reads floats. Returns
// the tensors.
std::vector<std::string> drop_quantizers_without_range(ir::Graph& graph, const quant::TensorRanges& ranges) {
  std::vector<std::string> dropped;
  const auto take_out = [&](ir::Node* quantizer) {
    graph.replace_uses(quantizer->output(), quantizer->input(0));
    graph.erase(quantizer);
  };
  for (ir::Node* node : ir::node_list(graph)) {
    if (!ir::is_quantizer(node) || node->input(0)->is_constant() || ranges.count(node->input(0)->name)) continue;
    dropped.push_back(node->input(0)->name);
    take_out(node);
  }
  for (ir::Node* node : ir::node_list(graph)) {
    if (!ir::is_quantizer(node) || !node->input(0)->is_constant()) continue;
    std::vector<ir::Node*> readers = node->output()->users;
    for (ir::Node* reader : readers)
      if (quant::is_weighted(*reader) && reader->input(1) == node->output() &&
          !ir::is_quantizer(reader->input(0)->producer))
        graph.set_input(reader, 1, node->input(0));
    if (node->output()->users.empty()) graph.erase(node);
  }
  graph.remove_dead();
  return dropped;
}

bool quantizes_activations(const ir::Graph& graph) {
  for (const auto& node : graph.nodes())
    if (ir::is_quantizer(node.get()) && !node->input(0)->is_constant()) return true;
  return false;
}

}  // namespace

void apply_cache(ir::Graph& graph, const quant::CalibrationCache& cache, const std::string& name,
                 const quant::QuantOptions& options, const std::filesystem::path& dump_passes) {
  if (options.equalize != quant::Equalization::kNo)
    fail_usage(name, ": has the ranges of the network as it is; quant.equalize would change them, so leave it out");
  if (options.bias_correction == quant::BiasCorrection::kEmpirical)
    fail_usage("quant.bias_correction: empirical needs images, and ", name, " has ranges alone; analytic needs none");
  quant::QuantOptions chosen = options;  // a cache has no ends of ranges, and so no zero points of its own
  if (!chosen.placement.asymmetric_activations) chosen.placement.asymmetric_activations = false;
  const BatchNormCorrection correction(graph, options);
  passes::PlacementRecord placed;
  const std::vector<passes::PassResult> before =
      passes::run_pipeline(graph, passes::placement_passes(chosen, {}, &placed), {.dump_directory = dump_passes});
  const quant::TensorRanges ranges = matching_ranges(take_quantizers_out(graph).graph, cache, name);
  if (const std::vector<std::string> dropped = drop_quantizers_without_range(graph, ranges); !dropped.empty())
    log_warning(name, ": has no range for ", some_of(dropped), "; what reads ", dropped.size() == 1 ? "it" : "them",
                " stays in floating point");
  if (!quantizes_activations(graph)) fail(name, ": has a range for none of the tensors that would be quantized");
  std::map<std::string, quant::Range> observed;
  for (const auto& [tensor, range] : ranges)
    observed[tensor] = {.amax = range.scale * 127.0f, .int8_scale = range.scale};
  passes::run_pipeline(graph, passes::scale_passes(observed, with_layers(options.weights, placed.layers)),
                       {.dump_directory = dump_passes, .passes_before = before.size()});
  correction.apply(graph, placed);
}

void apply_cache_file(ir::Graph& graph, const std::filesystem::path& file, const quant::QuantOptions& options,
                      const std::filesystem::path& dump_passes) {
  const std::string name = file.string();
  apply_cache(graph, quant::parse_calibration_cache(read_file_or_pipe(file), name), name, options, dump_passes);
}

}  // namespace octet::app
