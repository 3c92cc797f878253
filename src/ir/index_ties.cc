#include "ir/index_ties.h"

#include "ir/tie_rules.h"

namespace octet::ir {
namespace {

constexpr int32_t kFree = -1;

using TieRule = void (*)(const Node&, IndexTies&);

TieRule rule_of(OpKind kind) {
  static constexpr TieRule kRules[] = {
#define OCTET_OP(kind, min_inputs, max_inputs, max_outputs, infer, evaluate, ties, ...) ties,
#include "ir/ops.def"
#undef OCTET_OP
  };
  return kRules[static_cast<size_t>(kind)];
}

}  // namespace

IndexTies::IndexTies(const Graph& graph) {
  for (const Value* value : graph.values()) add(value);
  const auto fix_value = [this](const Value* value, const std::string& reason) {
    for (const Axis& axis : axes_.at(value))
      for (int64_t i = 0; i < axis.size; ++i) fix(axis.first + i, reason);
  };
  for (const Value* value : graph.inputs()) fix_value(value, str("'", value->name, "' is an input of the network"));
  for (const Value* value : graph.outputs()) fix_value(value, str("'", value->name, "' is an output of the network"));
  for (const auto& node : graph.nodes()) apply_rule(*node);
}

void IndexTies::add(const Value* value) {
  std::vector<Axis>& axes = axes_[value];
  if (!value->type.shape) return;
  for (const int64_t size : *value->type.shape) {
    const int64_t places = size == kDynamic || size > kMaxAxis ? 0 : size;
    axes.push_back({this->places(), places});
    for (int64_t i = 0; i < places; ++i) parent_.push_back(this->places());
    reason_.resize(parent_.size(), kFree);
    mentioned_.resize(parent_.size(), 0);
  }
}

void IndexTies::apply_rule(const Node& node) {
  ++turn_;
  rule_of(node.kind)(node, *this);
  const std::string reason = str(node.info().name, " '", node.name, "' takes it as a whole");
  for (const std::vector<Value*>* values : {&node.inputs, &node.outputs})
    for (const Value* value : *values) {
      if (value == nullptr) continue;
      for (const Axis& axis : axes_.at(value))
        for (int64_t i = 0; i < axis.size; ++i)
          if (mentioned_[static_cast<size_t>(axis.first + i)] != turn_) fix(axis.first + i, reason);
    }
}

IndexTies::Place IndexTies::place(const Value* value, size_t axis, int64_t i) const {
  const Axis& a = axes_.at(value).at(axis);
  OCTET_CHECK(i >= 0 && i < a.size, "'", value->name, "' has no index ", i, " along axis ", axis);
  return a.first + i;
}

int64_t IndexTies::size(const Value* value, size_t axis) const {
  const std::vector<Axis>& axes = axes_.at(value);
  return axis < axes.size() ? axes[axis].size : 0;
}

size_t IndexTies::rank(const Value* value) const {
  return axes_.at(value).size();
}

void IndexTies::tie(Place a, Place b) {
  mention(a), mention(b);
  a = class_of(a), b = class_of(b);
  if (a == b) return;
  if (b < a) std::swap(a, b);
  parent_[static_cast<size_t>(b)] = a;
  int32_t &mine = reason_[static_cast<size_t>(a)], other = reason_[static_cast<size_t>(b)];
  if (mine == kFree || (other != kFree && other < mine)) mine = other;
}

void IndexTies::tie_axes(const Value* a, size_t axis_a, const Value* b, size_t axis_b) {
  const int64_t size = this->size(a, axis_a);
  if (size != this->size(b, axis_b)) return;
  for (int64_t i = 0; i < size; ++i) tie(place(a, axis_a, i), place(b, axis_b, i));
}

void IndexTies::fix(Place place, const std::string& reason) {
  int32_t& why = reason_[static_cast<size_t>(class_of(place))];
  if (why != kFree) return;
  if (reasons_.empty() || reasons_.back() != reason) reasons_.push_back(reason);
  why = static_cast<int32_t>(reasons_.size()) - 1;
}

IndexTies::Place IndexTies::class_of(Place place) const {
  while (true) {
    Place& parent = parent_[static_cast<size_t>(place)];
    if (parent == place) return place;
    parent = parent_[static_cast<size_t>(parent)];
    place = parent;
  }
}

const std::string* IndexTies::why_fixed(Place place) const {
  const int32_t why = reason_[static_cast<size_t>(class_of(place))];
  return why == kFree ? nullptr : &reasons_[static_cast<size_t>(why)];
}

}  // namespace octet::ir
