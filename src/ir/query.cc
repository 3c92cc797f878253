#include "ir/query.h"

#include <algorithm>

namespace octet::ir {

bool single_use(const Graph& graph, const Value* value) {
  return value && value->users.size() == 1 && !graph.is_output(value);
}

Node* only_reader(const Graph& graph, const Value* value) {
  return single_use(graph, value) ? value->users[0] : nullptr;
}

std::vector<Node*> node_list(const Graph& graph) {
  std::vector<Node*> out;
  for (const auto& node : graph.nodes()) out.push_back(node.get());
  return out;
}

bool is_quantizer(const Node* node) {
  return node && node->kind == OpKind::kFakeQuantize;
}

bool has_symmetric_codes(const Node& quantizer) {
  const std::vector<int64_t> zeros = quantizer.input(2)->constant->to_ints();
  return quantizer.get_int("qmin") < 0 && std::ranges::all_of(zeros, [](int64_t zero) { return zero == 0; });
}

const Value* behind_quantizers(const Value* value) {
  while (value && is_quantizer(value->producer)) value = value->producer->input(0);
  return value;
}

Node* source(const Value* value) {
  const Value* v = behind_quantizers(value);
  return v ? v->producer : nullptr;
}

const Value* constant_behind(const Value* value) {
  const Value* v = behind_quantizers(value);
  return v && v->is_constant() ? v : nullptr;
}

std::optional<float> scalar(const Value* value) {
  if (!value || !value->is_constant() || value->constant->size() != 1) return std::nullopt;
  return value->constant->to_floats()[0];
}

}  // namespace octet::ir
