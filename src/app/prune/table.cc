#include "app/prune/table.h"

#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "ir/summary.h"
#include "report/format.h"
#include "report/text_table.h"

namespace octet::app {
namespace {

using Json = nlohmann::ordered_json;
using Macs = std::optional<int64_t>;

std::map<std::string, const ir::NodeSummary*> by_name(const ir::GraphSummary& summary) {
  std::map<std::string, const ir::NodeSummary*> out;
  for (const ir::NodeSummary& node : summary.nodes) out[node.name] = &node;
  return out;
}

// Of a tensor [N, C, ...], or the last axis of what a MatMul reads and makes.
int64_t channels_of(const ir::Value* value, const ir::Node& node) {
  const ir::Shape& shape = *value->type.shape;
  if (shape.size() < 2) return shape.empty() ? 1 : shape[0];
  return node.kind == ir::OpKind::kMatMul ? shape.back() : shape[1];
}

std::string arrow(const std::string& before, const std::string& after) {
  return before == after ? before : before + " -> " + after;
}

std::string sizes(const BeforeAfter<int64_t>& n) {
  const auto text = [](int64_t v) { return v < 0 ? std::string("?") : std::to_string(v); };
  return arrow(text(n.before), text(n.after));
}

std::string macs_text(const BeforeAfter<Macs>& n) {
  const auto text = [](const Macs& v) { return v ? report::human_count(static_cast<double>(*v)) : std::string("?"); };
  return arrow(text(n.before), text(n.after));
}

std::string counts(const BeforeAfter<int64_t>& n) {
  return macs_text({n.before, n.after});
}

Json json_of(const BeforeAfter<int64_t>& n) {
  return {{"before", n.before}, {"after", n.after}};
}

Json json_of(const BeforeAfter<Macs>& n) {
  return {{"before", n.before ? Json(*n.before) : Json()}, {"after", n.after ? Json(*n.after) : Json()}};
}

}  // namespace

double PruneSummary::pruning_ratio() const {
  return parameters.before == 0 ? 1 : static_cast<double>(parameters.after) / static_cast<double>(parameters.before);
}

PruneSummary summarize_pruning(const ir::Graph& whole, const ir::Graph& pruned, const passes::ChannelGroups& groups) {
  const ir::GraphSummary before = ir::summarize(whole), after = ir::summarize(pruned);
  const auto old_nodes = by_name(before), new_nodes = by_name(after);
  PruneSummary out;
  out.parameters = {before.parameters, after.parameters};
  out.macs = {before.macs, after.macs};
  for (const passes::ChannelGroups::Layer& layer : groups.layers()) {
    const ir::Node* node = pruned.find_node(layer.node->name);
    if (node == nullptr) continue;  // it reached no output
    const ir::NodeSummary &a = *old_nodes.at(node->name), &b = *new_nodes.at(node->name);
    out.layers.push_back({.name = node->name,
                          .op = node->info().name,
                          .inputs = {channels_of(layer.node->input(0), *node), channels_of(node->input(0), *node)},
                          .outputs = {channels_of(layer.node->output(), *node), channels_of(node->output(), *node)},
                          .parameters = {a.parameters, b.parameters},
                          .macs = {a.macs, b.macs},
                          .group = layer.group,
                          .why_kept = layer.why_kept});
  }
  return out;
}

std::string prune_table(const PruneSummary& summary) {
  using report::Align;
  report::TextTable table({"layer", "op", "group", "inputs", "outputs", "parameters", "MACs", "keeps channels because"},
                          {Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                           Align::kRight, Align::kLeft});
  BeforeAfter<int64_t> others = summary.parameters;
  for (const PrunedLayer& layer : summary.layers) {
    table.add_row({printable_line(layer.name), layer.op, layer.group < 0 ? "-" : std::to_string(layer.group),
                   sizes(layer.inputs), sizes(layer.outputs), counts(layer.parameters), macs_text(layer.macs),
                   printable_line(layer.why_kept)});
    others.before -= layer.parameters.before, others.after -= layer.parameters.after;
  }
  table.add_rule();
  if (others.before > 0) table.add_row({"other parameters", "", "", "", "", counts(others), "", ""});
  table.add_row({"total", "", "", "", "", counts(summary.parameters), macs_text(summary.macs), ""});
  return table.text();
}

Json prune_json(const PruneSummary& summary) {
  Json layers = Json::array();
  for (const PrunedLayer& layer : summary.layers)
    layers.push_back({{"name", layer.name},
                      {"op", layer.op},
                      {"group", layer.group < 0 ? Json() : Json(layer.group)},
                      {"inputs", json_of(layer.inputs)},
                      {"outputs", json_of(layer.outputs)},
                      {"parameters", json_of(layer.parameters)},
                      {"macs", json_of(layer.macs)},
                      {"why_kept", layer.why_kept.empty() ? Json() : Json(layer.why_kept)}});
  return {{"pruning_ratio", summary.pruning_ratio()},
          {"parameters", json_of(summary.parameters)},
          {"macs", json_of(summary.macs)},
          {"layers", layers}};
}

}  // namespace octet::app
