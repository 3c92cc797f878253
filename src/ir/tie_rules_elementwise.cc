// Tie rules of what computes element by element or along single axes, and what the rules share.
#include <algorithm>

#include "ir/axes.h"
#include "ir/shape_rule_util.h"
#include "ir/tie_rule_util.h"
#include "ir/tie_rules.h"

namespace octet::ir {

bool is_whole(const IndexTies& t, const Value* value, size_t axis) {
  return value->type.shape && axis < value->type.shape->size() && t.size(value, axis) == (*value->type.shape)[axis];
}

void tie_together(IndexTies& t, const AxisOf& whole, const std::vector<AxisOf>& others) {
  if (!is_whole(t, whole.value, whole.axis)) return;
  for (const AxisOf& a : others)
    if (!is_whole(t, a.value, a.axis)) return;
  for (const AxisOf& a : others) t.tie_axes(a.value, a.axis, whole.value, whole.axis);
}

void tie_broadcast(IndexTies& t, const Value* out, size_t axis, const std::vector<const Value*>& values) {
  const size_t from_end = t.rank(out) - axis;
  std::vector<AxisOf> others;
  for (const Value* v : values)
    if (t.rank(v) >= from_end) others.push_back({v, t.rank(v) - from_end});
  tie_together(t, {out, axis}, others);
}

void tie_all_axes(IndexTies& t, const Value* x, const Value* y, const std::vector<size_t>& but) {
  if (t.rank(x) != t.rank(y)) return;
  for (size_t axis = 0; axis < t.rank(x); ++axis)
    if (std::find(but.begin(), but.end(), axis) == but.end()) t.tie_axes(x, axis, y, axis);
}

std::vector<const Value*> present(const std::vector<Value*>& values) {
  std::vector<const Value*> out;
  for (const Value* v : values)
    if (v != nullptr) out.push_back(v);
  return out;
}

bool ranks_known(const std::vector<const Value*>& values) {
  return std::all_of(values.begin(), values.end(), [](const Value* v) { return v->type.shape.has_value(); });
}

void tie_nothing(const Node&, IndexTies&) {}

// Of inputs that broadcast. What is repeated along an axis serves all of its indices, and stays.
void tie_elementwise(const Node& node, IndexTies& t) {
  const std::vector<const Value*> inputs = present(node.inputs);
  const Value* out = node.output();
  if (out == nullptr || !ranks_known(inputs) || !ranks_known({out})) return;
  for (size_t axis = 0; axis < t.rank(out); ++axis) tie_broadcast(t, out, axis, inputs);
}

void tie_expand(const Node& node, IndexTies& t) {
  const Value *x = node.input(0), *y = node.output();
  if (!node.input(1)->is_constant() || !ranks_known({x, y})) return;
  for (size_t axis = 0; axis < t.rank(y); ++axis) tie_broadcast(t, y, axis, {x});
}

// The second output says which elements were kept.
void tie_dropout(const Node& node, IndexTies& t) {
  for (const Value* out : present(node.outputs)) tie_all_axes(t, node.input(0), out);
}

void tie_batch_norm(const Node& node, IndexTies& t) {
  const Value *x = node.input(0), *y = node.output();
  if (y == nullptr || t.rank(x) < 2 || t.rank(x) != t.rank(y)) return;
  tie_all_axes(t, x, y, {1});
  std::vector<AxisOf> channels = {{x, 1}};
  for (size_t i = 1; i < node.inputs.size(); ++i) channels.push_back({node.input(i), 0});
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.output(i) != nullptr) channels.push_back({node.output(i), 0});
  tie_together(t, {y, 1}, channels);
}

// What is normalized together stays whole.
void tie_layer_norm(const Node& node, IndexTies& t) {
  const Value *x = node.input(0), *y = node.output();
  if (y == nullptr || t.rank(x) == 0 || t.rank(x) != t.rank(y)) return;
  const size_t axis = normal_axis(node, node.get_int("axis"), t.rank(x));
  for (const Value* out : present(node.outputs))
    for (size_t i = 0; i < axis; ++i) t.tie_axes(x, i, out, i);
}

// Channels are normalized by their neighbors.
void tie_lrn(const Node& node, IndexTies& t) {
  tie_all_axes(t, node.input(0), node.output(), {1});
}

void tie_softmax(const Node& node, IndexTies& t) {
  const Value* x = node.input(0);
  if (!ranks_known({x})) return;
  tie_all_axes(t, x, node.output(), {normal_axis(node, node.get_int("axis", -1), t.rank(x))});
}

namespace {

// The axes that are not reduced; the others stay as they are.
void tie_kept(const Node& node, IndexTies& t, const std::vector<bool>& reduced) {
  const bool keep = node.get_int("keepdims", 1) != 0;
  size_t to = 0;
  for (size_t axis = 0; axis < reduced.size(); ++axis) {
    if (!reduced[axis]) t.tie_axes(node.input(0), axis, node.output(), to);
    if (keep || !reduced[axis]) ++to;
  }
}

}  // namespace

void tie_reduce(const Node& node, IndexTies& t) {
  const Value* x = node.input(0);
  std::vector<int64_t> axes = node.get_ints("axes");
  if (has_value(node, 1)) {
    const auto given = constant_ints(node, 1);
    if (!given) return;
    axes = *given;
  }
  if (!ranks_known({x, node.output()})) return;
  std::vector<bool> reduced(t.rank(x), axes.empty() && node.get_int("noop_with_empty_axes") == 0);
  for (const size_t axis : normal_axes(node, axes, t.rank(x))) reduced[axis] = true;
  tie_kept(node, t, reduced);
}

void tie_argmax(const Node& node, IndexTies& t) {
  const Value* x = node.input(0);
  if (!ranks_known({x, node.output()})) return;
  std::vector<bool> reduced(t.rank(x), false);
  reduced[normal_axis(node, node.get_int("axis", 0), t.rank(x))] = true;
  tie_kept(node, t, reduced);
}

}  // namespace octet::ir
