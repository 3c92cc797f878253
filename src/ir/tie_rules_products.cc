// Tie rules of products with weights, and of windows over the images of a channel.
#include "ir/tie_rule_util.h"
#include "ir/tie_rules.h"

namespace octet::ir {
namespace {

// Groups of channels: channel c of `count` is number c % (count / groups) of group c / (count / groups).
struct Groups {
  int64_t groups, in, out;  // channels of all groups
  int64_t in_group() const { return in / groups; }
  int64_t out_group() const { return out / groups; }
  // What may be taken out so that groups of one size remain: whole groups with all that they read and make, or the
  // channels of one number in every group. Whichever leaves more choice; a depthwise layer loses groups.
  bool whole() const { return groups > in_group(); }
};

// The inputs and outputs of a layer with several groups, but for its weights.
void tie_groups(IndexTies& t, const Groups& g, const Value* x, const Value* y) {
  if (g.whole()) {
    for (int64_t group = 0; group < g.groups; ++group) {
      const IndexTies::Place first = t.place(x, 1, group * g.in_group());
      for (int64_t i = 0; i < g.in_group(); ++i) t.tie(first, t.place(x, 1, group * g.in_group() + i));
      for (int64_t o = 0; o < g.out_group(); ++o) t.tie(first, t.place(y, 1, group * g.out_group() + o));
    }
    return;
  }
  for (int64_t c = 0; c < g.in; ++c) t.tie(t.place(x, 1, c), t.place(x, 1, c % g.in_group()));
  for (int64_t c = 0; c < g.out; ++c) t.tie(t.place(y, 1, c), t.place(y, 1, c % g.out_group()));
}

// 0 for a number that no network has.
int64_t group_count(const Node& node) {
  const int64_t groups = node.get_int("group", 1);
  return groups > IndexTies::kMaxAxis ? 0 : groups;
}

// Channels of x and y, and the weights' axes for them, have known sizes that belong together.
bool is_regular(const IndexTies& t, const Groups& g, const Value* x, const Value* y) {
  return t.rank(x) >= 2 && t.rank(y) >= 2 && g.groups >= 1 && g.in > 0 && g.out > 0 && g.in % g.groups == 0 &&
         g.out % g.groups == 0 && t.size(x, 1) == g.in && t.size(y, 1) == g.out;
}

}  // namespace

// Weights [M, C / groups, kernel...]
void tie_conv(const Node& node, IndexTies& t) {
  const Value *x = node.input(0), *w = node.input(1), *y = node.output();
  if (t.rank(w) < 2) return;
  const int64_t groups = group_count(node);
  const Groups g{groups, groups * t.size(w, 1), t.size(w, 0)};
  if (!is_regular(t, g, x, y)) return;
  t.tie_axes(x, 0, y, 0);
  if (g.groups > 1) tie_groups(t, g, x, y);
  if (g.groups == 1 || !g.whole())
    for (int64_t c = 0; c < g.in; ++c) t.tie(t.place(x, 1, c), t.place(w, 1, c % g.in_group()));
  t.tie_axes(w, 0, y, 1);
  if (node.has_input(2)) t.tie_axes(node.input(2), 0, y, 1);
}

// Weights [C, M / groups, kernel...]
void tie_conv_transpose(const Node& node, IndexTies& t) {
  const Value *x = node.input(0), *w = node.input(1), *y = node.output();
  if (t.rank(w) < 2) return;
  const int64_t groups = group_count(node);
  const Groups g{groups, t.size(w, 0), groups * t.size(w, 1)};
  if (!is_regular(t, g, x, y)) return;
  t.tie_axes(x, 0, y, 0);
  if (g.groups > 1) tie_groups(t, g, x, y);
  if (g.groups == 1 || !g.whole())
    for (int64_t c = 0; c < g.out; ++c) t.tie(t.place(y, 1, c), t.place(w, 1, c % g.out_group()));
  t.tie_axes(w, 0, x, 1);
  if (node.has_input(2)) t.tie_axes(node.input(2), 0, y, 1);
}

void tie_gemm(const Node& node, IndexTies& t) {
  const Value *a = node.input(0), *b = node.input(1), *y = node.output();
  const size_t ta = node.get_int("transA") != 0, tb = node.get_int("transB") != 0;
  const std::vector<const Value*> c =
      node.has_input(2) ? std::vector<const Value*>{node.input(2)} : std::vector<const Value*>{};
  if (t.rank(a) != 2 || t.rank(b) != 2 || t.rank(y) != 2 || !ranks_known(c)) return;
  t.tie_axes(a, 1 - ta, b, tb);
  for (const size_t axis : {size_t{0}, size_t{1}}) {
    std::vector<AxisOf> others = {axis == 0 ? AxisOf{a, ta} : AxisOf{b, 1 - tb}};
    for (const Value* v : c)
      if (t.rank(v) + axis >= 2) others.push_back({v, t.rank(v) + axis - 2});
    tie_together(t, {y, axis}, others);
  }
}

// As numpy: a vector on the left is a row, one on the right a column; that axis is not in the result.
void tie_matmul(const Node& node, IndexTies& t) {
  const Value *a = node.input(0), *b = node.input(1), *y = node.output();
  if (!ranks_known({a, b, y})) return;
  const size_t ra = t.rank(a), rb = t.rank(b), ry = t.rank(y);
  t.tie_axes(a, ra - 1, b, rb == 1 ? 0 : rb - 2);
  if (rb > 1) tie_together(t, {y, ry - 1}, {{b, rb - 1}});
  const size_t column = rb > 1 ? 1 : 0, row = ra > 1 ? 1 : 0;
  if (row == 1) tie_together(t, {y, ry - 1 - column}, {{a, ra - 2}});
  const size_t batch = ry - row - column;  // of the axes before the matrices, which broadcast
  for (size_t axis = 0; axis < batch; ++axis) {
    const size_t from_end = batch - axis;
    std::vector<AxisOf> others;
    for (const auto& [value, rank] : {std::pair(a, ra), std::pair(b, rb)})
      if (rank >= 2 + from_end) others.push_back({value, rank - 2 - from_end});
    tie_together(t, {y, axis}, others);
  }
}

// Images of a channel stay by themselves; their pixels do not.
void tie_pool(const Node& node, IndexTies& t) {
  const Value *x = node.input(0), *y = node.output();
  if (t.rank(x) < 2 || t.rank(y) != t.rank(x)) return;
  t.tie_axes(x, 0, y, 0);
  t.tie_axes(x, 1, y, 1);
}

}  // namespace octet::ir
