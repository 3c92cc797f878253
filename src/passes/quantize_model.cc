#include "passes/quantize_model.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "ir/traits.h"
#include "passes/pipelines.h"
#include "passes/place_fake_quant.h"
#include "quant/fusion_model.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;

void add_inputs(const Node& node, const LayerQuantization& layer, std::vector<quant::QdqInput>& out) {
  if (quant::is_weighted(node)) {
    out.push_back({&node, 0, layer.quantize_input});
    out.push_back({&node, 1, layer.quantize_weight});
    return;
  }
  for (const size_t input : layer.inputs)
    if (input >= ir::data_inputs(node))
      fail_usage("quantization: ", node.info().name, " '", node.name, "' has no activation ", input, "; it has ",
                 ir::data_inputs(node), " (the first is 0)");
  for (size_t i = 0; i < ir::data_inputs(node); ++i) {
    if (!node.has_input(i)) continue;
    const bool chosen =
        layer.inputs.empty() || std::find(layer.inputs.begin(), layer.inputs.end(), i) != layer.inputs.end();
    out.push_back({&node, i, layer.quantize_input && chosen});
  }
}

std::unordered_set<const Node*> nodes_of(const Graph& graph, const LayerQuantization& layer) {
  return quant::select_nodes(graph, {layer.nodes}, "quantization");
}

// The first layer that selects a node decides.
quant::QdqCase case_of_layers(const std::vector<LayerQuantization>& layers) {
  return {.name = "layers", .find = [&layers](const Graph& graph) {
            std::vector<quant::QdqInput> out;
            std::unordered_set<const Node*> known;
            for (const LayerQuantization& layer : layers) {
              const std::unordered_set<const Node*> nodes = nodes_of(graph, layer);
              for (const auto& node : graph.nodes())
                if (nodes.count(node.get()) && known.insert(node.get()).second) add_inputs(*node, layer, out);
            }
            return out;
          }};
}

// But for the nodes that the specification names.
quant::QdqCase without_layers(const quant::QdqCase& own, const std::vector<LayerQuantization>& layers) {
  return {.name = own.name, .find = [&own, &layers](const Graph& graph) {
            std::vector<quant::QdqInput> out = own.find(graph);
            for (const LayerQuantization& layer : layers)
              std::erase_if(out, [nodes = nodes_of(graph, layer)](const quant::QdqInput& input) {
                return nodes.count(input.node) > 0;
              });
            return out;
          }};
}

}  // namespace

Graph quantize_model(const Graph& graph, QuantizationMode mode, const QuantizationSpec& spec,
                     const std::vector<quant::QdqCase>& cases) {
  if (mode == QuantizationMode::kPartial && spec.layers.empty() && cases.empty())
    fail_usage("quantization in part needs the layers that are to be quantized, or cases that find them");
  Graph out = graph.clone();
  run_pipeline(out, preparation_passes(/*keep_dropout=*/true));
  quant::PlacementOptions placement = spec.placement;
  placement.only_cases = mode == QuantizationMode::kPartial;
  placement.cases.push_back(case_of_layers(spec.layers));
  for (const quant::QdqCase& own : cases) placement.cases.push_back(without_layers(own, spec.layers));
  place_fake_quant(out, placement);
  return out;
}

}  // namespace octet::passes
