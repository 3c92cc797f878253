#include "passes/place_fake_quant.h"

#include <algorithm>
#include <unordered_map>

#include "ir/infer.h"
#include "ir/query.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Tensor;
using ir::Value;

struct Constants {
  Value* scale;
  Value* zero_point;
};

Constants add_constants(Graph& graph, const quant::PlacedQuantizer& p) {
  const std::string& stem = p.scale_group.empty() ? p.value->name : p.scale_group;
  ir::Shape shape;
  if (p.axis) shape = {p.value->constant->shape().at(static_cast<size_t>(*p.axis))};
  const size_t n = static_cast<size_t>(ir::element_count(shape));
  Constants c;
  c.scale =
      graph.add_constant(graph.unique_name(stem + "/scale"), Tensor::of<float>(shape, std::vector<float>(n, 1.0f)));
  const int zero = p.asymmetric ? (p.qmin + p.qmax + 1) / 2 - (p.qmin < 0 ? 1 : 0) : 0;  // see quant::is_asymmetric
  const Tensor zeros = p.qmin < 0 ? Tensor::of<int8_t>(shape, std::vector<int8_t>(n, static_cast<int8_t>(zero)))
                                  : Tensor::of<uint8_t>(shape, std::vector<uint8_t>(n, static_cast<uint8_t>(zero)));
  c.zero_point = graph.add_constant(graph.unique_name(stem + "/zero_point"), zeros);
  return c;
}

// Relu(x) -> Clip(x, 0, 6).
void make_relu6(Graph& graph, Node* relu) {
  const auto limit = [&](const char* name, float x) {
    return graph.add_constant(graph.unique_name(relu->name + name), Tensor::scalar<float>(x));
  };
  Value *const low = limit("/min", 0), *const high = limit("/max", 6);
  relu->kind = OpKind::kClip;
  relu->inputs.resize(3);
  graph.set_input(relu, 1, low);
  graph.set_input(relu, 2, high);
}

// The graph gives out `quantized`, under the name that `value` had.
void give_out(Graph& graph, Value* value, Value* quantized, const std::string& name_of_float) {
  const std::string name = value->name;
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (graph.outputs()[i] == value) graph.set_output_value(i, quantized);
  graph.rename(value, name_of_float);
  graph.rename(quantized, name);
}

}  // namespace

int place_fake_quant(Graph& graph, const quant::PlacementOptions& options) {
  return place_fake_quant(graph, options, quant::plan_placement(graph, options));
}

int place_fake_quant(Graph& graph, const quant::PlacementOptions& options,
                     const std::vector<quant::PlacedQuantizer>& plan) {
  std::unordered_map<const Node*, size_t> position;
  for (const auto& node : graph.nodes()) position.emplace(node.get(), position.size());
  std::unordered_map<std::string, Constants> groups;
  for (const quant::PlacedQuantizer& p : plan) {
    Constants c;
    if (const auto it = groups.find(p.scale_group); !p.scale_group.empty() && it != groups.end()) {
      c = it->second;
    } else {
      c = add_constants(graph, p);
      if (!p.scale_group.empty()) groups[p.scale_group] = c;
    }
    const auto first = std::min_element(p.uses.begin(), p.uses.end(), [&](const auto& a, const auto& b) {
      return position.at(a.node) < position.at(b.node);
    });
    Node* before = first == p.uses.end() ? nullptr : first->node;
    if (p.relu6) make_relu6(graph, p.value->producer);
    ir::Attributes attributes = {
        {"qmin", int64_t{p.qmin}}, {"qmax", int64_t{p.qmax}}, {"state", std::string(ir::kObserving)}};
    if (p.axis) attributes["axis"] = int64_t{*p.axis};
    const std::string name = graph.unique_name(p.value->name + "/fake_quantize");
    Node* node = graph.add_node(OpKind::kFakeQuantize, name, {p.value, c.scale, c.zero_point}, {name},
                                std::move(attributes), before);
    ir::infer_node(*node);
    if (p.output) give_out(graph, p.value, node->output(), p.value_name(graph));
    for (const quant::QuantizedUse& use : p.uses) graph.set_input(use.node, use.input, node->output());
  }
  if (options.target != quant::Target::kAny) graph.metadata[quant::kTargetKey] = schema::enum_name(options.target);
  return static_cast<int>(plan.size());
}

int remove_fake_quant(Graph& graph) {
  int removed = 0;
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    Node* node = (it++)->get();
    if (!is_quantizer(node)) continue;
    ++removed;
    if (bypass(graph, node, node->input(0))) continue;
    // Both are what the graph gives out: the name of the output needs a node.
    node->kind = OpKind::kIdentity;
    node->attributes.clear();
    for (const size_t constant : {1, 2}) graph.set_input(node, constant, nullptr);
    node->inputs.resize(1);
  }
  graph.metadata.erase(quant::kTargetKey);
  graph.remove_dead();
  return removed;
}

}  // namespace octet::passes
