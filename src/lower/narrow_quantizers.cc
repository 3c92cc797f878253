#include "lower/narrow_quantizers.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/query.h"
#include "ir/traits.h"
#include "lower/moves.h"
#include "lower/pointwise.h"
#include "lower/quant_params.h"

namespace octet::lower {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Value;

// Which values cannot be negative (a NaN counts as none: quantizers make zero of it).
class NonNegative {
 public:
  // In execution order.
  void add(const Node& node) {
    if (result(node))
      for (const Value* out : node.outputs) known_.insert(out);
  }
  bool contains(const Value* v) const {
    if (v == nullptr) return false;
    if (!v->is_constant()) return known_.count(v) > 0;
    const std::vector<float> numbers = v->constant->to_floats();
    return std::all_of(numbers.begin(), numbers.end(), [](float x) { return x >= 0; });
  }

 private:
  bool all_inputs(const Node& node) const {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [this](const Value* v) { return contains(v); });
  }
  bool result(const Node& node) const {
    switch (node.kind) {
      case OpKind::kRelu:
      case OpKind::kSigmoid:
      case OpKind::kHardSigmoid:
      case OpKind::kSoftmax:
      case OpKind::kAbs:
      case OpKind::kSqrt:
      case OpKind::kExp:
        return true;
      case OpKind::kClip: {
        const auto bounds = clamp_bounds(node);
        return (bounds && bounds->lo >= 0) || contains(node.input(0));
      }
      case OpKind::kFakeQuantize:
        return is_constant(node.output()) ? constant_is(node) : contains(node.input(0));
      case OpKind::kAdd:
      case OpKind::kMul:
      case OpKind::kMin:
        return all_inputs(node);
      case OpKind::kMax:
        return std::any_of(node.inputs.begin(), node.inputs.end(), [this](const Value* v) { return contains(v); });
      case OpKind::kAveragePool:
      case OpKind::kGlobalAveragePool:
      case OpKind::kReduceMean:
        return contains(node.input(0));
      case OpKind::kConcat:
        return all_inputs(node);
      case OpKind::kPad: {
        const auto boxes = box_moves(node);
        return (!boxes || !boxes->fill || *boxes->fill >= 0) && contains(node.input(0));
      }
      default:
        return ir::commutes_with_quantizer(node) && contains(node.input(0));
    }
  }
  static bool constant_is(const Node& quantizer) {
    const auto numbers = constant_floats(quantizer.output());
    return numbers && std::all_of(numbers->begin(), numbers->end(), [](float x) { return x >= 0; });
  }

  std::unordered_set<const Value*> known_;
};

// More than the features of one pixel.
bool has_pixels(const Value* v) {
  const ir::Shape& shape = shape_of(v);
  return shape.size() == 4 && shape[2] * shape[3] > 1;
}

// Quantizers whose codes meet as they are.
class Meetings {
 public:
  // The quantizers whose codes a value has, each followed from where it is made.
  void follow(const Node& quantizer) { walk(quantizer, quantizer.output()); }
  // Takes out of `chosen` whatever meets one that is not chosen, until nothing does.
  void settle(std::unordered_set<const Node*>& chosen) const {
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [place, quantizers] : at_) {
        const auto is_chosen = [&](const Node* q) { return chosen.count(q) > 0; };
        if (std::all_of(quantizers.begin(), quantizers.end(), is_chosen)) continue;
        for (const Node* q : quantizers) changed |= chosen.erase(q) > 0;
      }
    }
  }

 private:
  void walk(const Node& quantizer, const Value* codes) {
    for (const Node* user : codes->users) {
      if (user->kind == OpKind::kConcat || is_quantizer(user)) {
        at_[user].push_back(&quantizer);
        if (is_quantizer(user)) {
          at_[user].push_back(user);
          continue;
        }
      }
      if (!ir::commutes_with_quantizer(*user) && user->kind != OpKind::kPad) continue;
      for (const Value* out : user->outputs)
        if (out != nullptr && seen_[&quantizer].insert(out).second) walk(quantizer, out);
    }
  }

  std::unordered_map<const Node*, std::vector<const Node*>> at_;
  std::unordered_map<const Node*, std::unordered_set<const Value*>> seen_;
};

}  // namespace

int narrow_quantizers(ir::Graph& graph) {
  NonNegative numbers;
  Meetings meetings;
  std::unordered_set<const Node*> chosen;
  for (const Node* node : node_list(graph)) {
    numbers.add(*node);
    if (!is_quantizer(node) || is_constant(node->output())) continue;
    meetings.follow(*node);
    const Value* scale = node->input(1);
    if (has_pixels(node->output()) && scale && scale->is_constant() && scale->constant->size() == 1 &&
        has_symmetric_codes(*node) && numbers.contains(node->input(0)))
      chosen.insert(node);
  }
  meetings.settle(chosen);
  for (Node* node : node_list(graph))
    if (chosen.count(node) > 0) node->attributes["qmin"] = int64_t{0};
  return static_cast<int>(chosen.size());
}

}  // namespace octet::lower
