#include "quant/fusion_model.h"

#include <algorithm>
#include <cmath>

#include "ir/axes.h"
#include "ir/query.h"
#include "ir/traits.h"

namespace octet::quant {

using ir::Node;
using ir::OpKind;
using ir::Value;

namespace {

// All elements of a constant are >= 0.
bool constant_is_nonnegative(const Value& value) {
  for (const float x : value.constant->to_floats())
    if (!(x >= 0)) return false;
  return true;
}

bool shapes_agree(const Value& a, const Value& b) {
  if (!a.type.shape || !b.type.shape) return true;
  if (a.type.shape->size() != b.type.shape->size()) return false;
  for (size_t d = 0; d < a.type.shape->size(); ++d) {
    const int64_t x = (*a.type.shape)[d], y = (*b.type.shape)[d];
    if (x != y && x != ir::kDynamic && y != ir::kDynamic) return false;
  }
  return true;
}

// Arithmetic of feature maps with a constant for each channel: the index of the operand that is no constant.
std::optional<size_t> operand_by_channel(const Node& node) {
  const bool arithmetic =
      node.kind == OpKind::kAdd || node.kind == OpKind::kSub || node.kind == OpKind::kMul || node.kind == OpKind::kDiv;
  if (!arithmetic || !node.output()->type.shape || ir::rank_of(node.output()) != 4) return std::nullopt;
  const int64_t channels = ir::shape_of(node.output())[1];
  for (size_t i = 0; i < 2; ++i) {
    if (!node.input(i)->is_constant() || node.input(1 - i)->is_constant()) continue;
    const ir::Shape& shape = node.input(i)->constant->shape();
    const bool by_channel = channels > 1 && node.input(i)->constant->size() == channels && shape.size() >= 3 &&
                            shape[shape.size() - 3] == channels;
    if (by_channel) return 1 - i;
  }
  return std::nullopt;
}

bool is_gate(const Node* node) {
  return node && (node->kind == OpKind::kSigmoid || node->kind == OpKind::kHardSigmoid);
}

// See hardly_negative().
bool has_short_end(const Node& node) {
  switch (node.kind) {
    case OpKind::kHardSwish:
    case OpKind::kMish:
    case OpKind::kGelu:
      return true;
    case OpKind::kElu:
      return node.get_float("alpha") <= 1;
    case OpKind::kLeakyRelu:
      return node.get_float("alpha") >= 0 && node.get_float("alpha") <= 0.25f;
    default:
      return is_swish(node);
  }
}

bool is_pool(OpKind kind) {
  return kind == OpKind::kMaxPool || kind == OpKind::kAveragePool || kind == OpKind::kGlobalAveragePool ||
         kind == OpKind::kGlobalMaxPool || kind == OpKind::kReduceMean || kind == OpKind::kReduceMax ||
         kind == OpKind::kDropout;
}

}  // namespace

bool is_weighted(const Node& node) {
  if (!node.info().has(ir::trait::kWeighted)) return false;
  const Value* weights = constant_behind(node.input(1));
  return weights && weights->constant->size() > 0 && !constant_behind(node.input(0));
}

std::optional<int> weight_axis(const Node& node) {
  switch (node.kind) {
    case OpKind::kConv:
      return 0;
    case OpKind::kConvTranspose:
      return 1;
    case OpKind::kGemm:
      return node.get_int("transB") ? 0 : 1;
    case OpKind::kMatMul: {
      const int rank = static_cast<int>(constant_behind(node.input(1))->constant->shape().size());
      return rank >= 2 ? std::optional<int>(rank - 1) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::unordered_set<const Node*> outermost_weighted(const ir::Graph& graph, bool first) {
  std::unordered_set<const Value*> beyond;  // values with a weighted node above (first) or below
  std::unordered_set<const Node*> out;
  const auto visit = [&](const Node& node) {
    const auto& from = first ? node.inputs : node.outputs;
    const auto& to = first ? node.outputs : node.inputs;
    const bool reached = std::any_of(from.begin(), from.end(), [&](const Value* v) { return v && beyond.count(v); });
    if (is_weighted(node) && !reached) out.insert(&node);
    if (is_weighted(node) || reached)
      for (const Value* v : to)
        if (v) beyond.insert(v);
  };
  if (first)
    for (auto it = graph.nodes().begin(); it != graph.nodes().end(); ++it) visit(**it);
  else
    for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it) visit(**it);
  return out;
}

bool is_activation(const Node& node) {
  if (!node.info().has(ir::trait::kActivation)) return false;
  const auto is_fixed = [&](size_t limit) { return !node.has_input(limit) || node.input(limit)->is_constant(); };
  return node.kind != OpKind::kClip || (is_fixed(1) && is_fixed(2));
}

bool is_residual_add(const Node& node) {
  return node.kind == OpKind::kAdd && !constant_behind(node.input(0)) && !constant_behind(node.input(1)) &&
         shapes_agree(*node.input(0), *node.input(1));
}

bool is_squeeze_excite_mul(const Node& node) {
  if (node.kind != OpKind::kMul || constant_behind(node.input(0)) || constant_behind(node.input(1))) return false;
  for (size_t i = 0; i < 2; ++i) {
    const Node* gate = source(node.input(i));
    if (is_gate(gate) && behind_quantizers(gate->input(0)) != behind_quantizers(node.input(1 - i))) return true;
  }
  return false;
}

bool is_swish(const Node& node) {
  if (node.kind != OpKind::kMul) return false;
  for (size_t i = 0; i < 2; ++i) {
    const Node* gate = source(node.input(i));
    if (is_gate(gate) && gate->input(0) == node.input(1 - i)) return true;
  }
  return false;
}

bool is_average_pool(const Node& node) {
  if (node.kind == OpKind::kAveragePool || node.kind == OpKind::kGlobalAveragePool) return true;
  if (node.kind != OpKind::kReduceMean || !node.input(0)->type.shape) return false;
  std::vector<int64_t> axes = node.get_ints("axes");
  if (node.has_input(1)) {
    if (!node.input(1)->is_constant()) return false;
    axes = node.input(1)->constant->to_ints();
  }
  const size_t rank = node.input(0)->type.shape->size();
  if (axes.empty() || rank < 3) return false;
  return std::all_of(axes.begin(), axes.end(), [&](int64_t a) { return ir::normal_axis(node, a, rank) >= 2; });
}

std::optional<size_t> standalone_batch_norm(const Node& node) {
  const std::optional<size_t> by_channel = operand_by_channel(node);
  if (node.kind != OpKind::kBatchNormalization && !by_channel) return std::nullopt;
  const size_t operand = by_channel.value_or(0);
  const Node* maker = source(node.input(operand));
  const bool for_it_alone = maker && maker->output()->users.size() == 1;
  if (for_it_alone && is_weighted(*maker)) return std::nullopt;
  if (!by_channel) return operand;
  if (for_it_alone && operand_by_channel(*maker)) return std::nullopt;  // not the first of it
  bool scales = false;
  const Node* last = &node;
  for (; last && operand_by_channel(*last);
       last = last->output()->users.size() == 1 ? last->output()->users[0] : nullptr)
    scales |= last->kind == OpKind::kMul || last->kind == OpKind::kDiv;
  return scales && last && is_activation(*last) ? std::optional(operand) : std::nullopt;
}

Node* fused_producer(const ir::Graph& graph, const Value* value) {
  if (!single_use(graph, value)) return nullptr;
  Node* node = value->producer;
  // Steps down one kind of node when it is there.
  const auto skip = [&](auto&& wanted) {
    if (!node || !wanted(*node)) return true;
    const Value* x = node->input(0);
    if (!single_use(graph, x)) return false;
    node = x->producer;
    return true;
  };
  if (!skip([](const Node& n) { return n.kind == OpKind::kDropout || n.kind == OpKind::kIdentity; })) return nullptr;
  if (!skip([](const Node& n) { return is_activation(n); })) return nullptr;
  if (!skip([](const Node& n) { return n.kind == OpKind::kBatchNormalization; })) return nullptr;
  return node && is_weighted(*node) ? node : nullptr;
}

bool hardly_negative(const Value* value) {
  SignAnalysis signs;
  std::unordered_set<const Value*> seen = {value};
  std::vector<const Value*> todo = {value};
  bool any = false;  // an activation that has a short end
  const auto look_at = [&](const Value* v) {
    if (seen.insert(v).second) todo.push_back(v);
  };
  while (!todo.empty()) {
    const Value* v = todo.back();
    todo.pop_back();
    const Node* node = v->producer;
    if (!node) return false;
    if (has_short_end(*node)) {
      any = true;
    } else if (is_squeeze_excite_mul(*node)) {
      look_at(node->input(is_gate(source(node->input(0))) ? 1 : 0));
    } else if (is_quantizer(node) || node->info().has(ir::trait::kMoves) || is_pool(node->kind)) {
      for (size_t i = 0; i < ir::data_inputs(*node); ++i)
        if (node->has_input(i)) look_at(node->input(i));
    } else if (!signs.cannot_be_negative(v)) {
      return false;
    }
  }
  return any;
}

bool SignAnalysis::cannot_be_negative(const Value* value) {
  // Without recursion over the depth of the network: proofs of the values that this one rests on come first.
  std::vector<const Value*> todo = {value};
  while (!todo.empty()) {
    const Value* v = todo.back();
    if (known_.count(v)) {
      todo.pop_back();
      continue;
    }
    bool ready = true;
    if (v->producer)
      for (const Value* x : v->producer->inputs)
        if (x && !known_.count(x)) {
          todo.push_back(x);
          ready = false;
        }
    if (!ready) continue;
    known_[v] = prove(v);
    todo.pop_back();
  }
  return known_.at(value);
}

bool SignAnalysis::prove(const Value* value) {
  const auto is_floating = [](ir::DataType t) {
    return t == ir::DataType::kFloat32 || t == ir::DataType::kFloat16 || t == ir::DataType::kBFloat16 ||
           t == ir::DataType::kFloat64;
  };
  if (value->is_constant()) return is_floating(value->type.data_type) && constant_is_nonnegative(*value);
  const Node* node = value->producer;
  if (!node) return false;
  const auto input = [&](size_t i) { return node->has_input(i) && known_.at(node->input(i)); };
  const size_t data = ir::data_inputs(*node);
  switch (node->kind) {
    case OpKind::kClip:
      return (input(0) || input(1)) && (!node->has_input(2) || input(2));
    case OpKind::kResize:  // cubic interpolation overshoots
      return input(0) && node->get_string("mode") != "cubic" && node->get_float("extrapolation_value") >= 0;
    case OpKind::kPad:
      return input(0) && (!node->has_input(2) || input(2));
    case OpKind::kMax:
      for (size_t i = 0; i < data; ++i)
        if (input(i)) return true;
      return false;
    default:
      if (node->info().has(ir::trait::kNeverNegative)) return true;
      if (!node->info().has(ir::trait::kKeepsSign)) return false;
      for (size_t i = 0; i < data; ++i)
        if (!input(i)) return false;
      return true;
  }
}

}  // namespace octet::quant
