// Tie rules of what moves, joins and cuts axes.
#include <algorithm>
#include <numeric>

#include "ir/axes.h"
#include "ir/shape_rule_util.h"
#include "ir/tie_rule_util.h"
#include "ir/tie_rules.h"

namespace octet::ir {
namespace {

// A run of axes of x whose elements are those of a run of axes of y, in the same order: [C, H, W] and [C * H * W].
struct SameElements {
  const Value *x, *y;
  std::vector<size_t> x_axes, y_axes;
};

// Where element e of a run lies along one of its axes.
class Along {
 public:
  Along(const Value* value, const std::vector<size_t>& axes, size_t axis) {
    for (const size_t a : axes)
      if (a > axis) inner_ *= (*value->type.shape)[a];
    size_ = (*value->type.shape)[axis];
  }
  int64_t operator()(int64_t element) const { return element / inner_ % size_; }
  int64_t size() const { return size_; }

 private:
  int64_t inner_ = 1, size_ = 1;
};

int64_t elements_of(const SameElements& run) {
  int64_t count = 1;
  for (const size_t axis : run.x_axes) count *= (*run.x->type.shape)[axis];
  return count;
}

// An index along axis `a` of x belongs to those along axis `b` of y with which it shares an element. How many parts
// result of which nothing is fixed so far.
int64_t free_parts(const IndexTies& t, const SameElements& run, size_t a, size_t b, int64_t elements) {
  const Along x(run.x, run.x_axes, a), y(run.y, run.y_axes, b);
  std::vector<int64_t> parent(static_cast<size_t>(x.size() + y.size()));
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int64_t i) {
    while (parent[static_cast<size_t>(i)] != i) {
      int64_t& above = parent[static_cast<size_t>(i)];
      i = above = parent[static_cast<size_t>(above)];
    }
    return i;
  };
  for (int64_t e = 0; e < elements; ++e) parent[static_cast<size_t>(root(x(e)))] = root(x.size() + y(e));
  std::vector<bool> fixed(parent.size(), false);
  for (int64_t i = 0; i < std::ssize(parent); ++i) {
    const IndexTies::Place place = i < x.size() ? t.place(run.x, a, i) : t.place(run.y, b, i - x.size());
    if (t.why_fixed(place) != nullptr) fixed[static_cast<size_t>(root(i))] = true;
  }
  int64_t count = 0;
  for (int64_t i = 0; i < std::ssize(parent); ++i) count += root(i) == i && !fixed[static_cast<size_t>(i)];
  return count;
}

// By the pair of axes that leaves most choice: of [C, H, W] and [C * H * W] the channels, since pixels are fixed, and
// of [C] and [G, C / G] the longer of G and C / G. The other axes stay as they are.
void tie_run(IndexTies& t, const SameElements& run) {
  constexpr int64_t kMaxElements = int64_t{1} << 22;
  const int64_t elements = elements_of(run);
  if (elements > kMaxElements) return;
  int64_t most = 0;
  std::pair<size_t, size_t> best;
  for (const size_t a : run.x_axes)
    for (const size_t b : run.y_axes) {
      const int64_t parts = free_parts(t, run, a, b, elements);
      if (parts > most) most = parts, best = {a, b};
    }
  if (most == 0) return;
  const Along x(run.x, run.x_axes, best.first), y(run.y, run.y_axes, best.second);
  for (int64_t e = 0; e < elements; ++e) t.tie(t.place(run.x, best.first, x(e)), t.place(run.y, best.second, y(e)));
}

}  // namespace

// Shapes are walked from both ends of their axes in the shortest runs of equal products; an open size matches an open
// size.
void tie_same_elements(const Node& node, IndexTies& t) {
  const Value *x = node.input(0), *y = node.output();
  if (!ranks_known({x, y})) return;
  const Shape &from = *x->type.shape, &to = *y->type.shape;
  std::vector<SameElements> runs;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    SameElements run{x, y, {i}, {j}};
    int64_t a = from[i++], b = to[j++];
    if ((a == kDynamic) != (b == kDynamic)) return;
    if (a == kDynamic) continue;
    while (a != b || a == 0) {
      size_t& at = a < b ? i : j;
      const Shape& shape = a < b ? from : to;
      if (a == 0 || b == 0 || at == shape.size() || shape[at] == kDynamic) return;
      if (__builtin_mul_overflow(a < b ? a : b, shape[at], a < b ? &a : &b)) return;
      (&at == &i ? run.x_axes : run.y_axes).push_back(at);
      ++at;
    }
    runs.push_back(std::move(run));
  }
  for (; i < from.size(); ++i)
    if (from[i] != 1) return;
  for (; j < to.size(); ++j)
    if (to[j] != 1) return;
  for (const SameElements& run : runs) {
    const auto whole = [&](const Value* v, const std::vector<size_t>& axes) {
      return std::all_of(axes.begin(), axes.end(), [&](size_t axis) { return is_whole(t, v, axis); });
    };
    if (whole(x, run.x_axes) && whole(y, run.y_axes)) tie_run(t, run);
  }
}

void tie_transpose(const Node& node, IndexTies& t) {
  const Value *x = node.input(0), *y = node.output();
  if (!ranks_known({x, y})) return;
  const std::vector<int64_t> from = permutation_of(node, t.rank(x));
  for (size_t axis = 0; axis < from.size(); ++axis) t.tie_axes(x, static_cast<size_t>(from[axis]), y, axis);
}

void tie_concat(const Node& node, IndexTies& t) {
  const std::vector<const Value*> inputs = present(node.inputs);
  const Value* y = node.output();
  if (!ranks_known(inputs) || !ranks_known({y})) return;
  const size_t joined = normal_axis(node, node.get_int("axis"), t.rank(y));
  for (size_t axis = 0; axis < t.rank(y); ++axis) {
    std::vector<AxisOf> others;
    for (const Value* v : inputs) others.push_back({v, axis});
    if (axis != joined) tie_together(t, {y, axis}, others);
  }
  if (!is_whole(t, y, joined)) return;  // then no piece has an open size
  int64_t first = 0;
  for (const Value* v : inputs) {
    for (int64_t i = 0; i < t.size(v, joined); ++i) t.tie(t.place(v, joined, i), t.place(y, joined, first + i));
    first += t.size(v, joined);
  }
}

void tie_split(const Node& node, IndexTies& t) {
  const Value* x = node.input(0);
  const std::vector<const Value*> pieces = present(node.outputs);
  if (pieces.size() != node.outputs.size() || !ranks_known({x}) || !ranks_known(pieces)) return;
  const size_t cut = normal_axis(node, node.get_int("axis", 0), t.rank(x));
  bool whole = is_whole(t, x, cut);
  for (const Value* v : pieces) {
    whole = whole && is_whole(t, v, cut);
    tie_all_axes(t, x, v, {cut});
  }
  if (!whole) return;
  int64_t first = 0;
  for (const Value* v : pieces) {
    for (int64_t i = 0; i < t.size(v, cut); ++i) t.tie(t.place(x, cut, first + i), t.place(v, cut, i));
    first += t.size(v, cut);
  }
}

// A range of an axis, of step 1. What lies outside of it is not used.
void tie_slice(const Node& node, IndexTies& t) {
  const Value *x = node.input(0), *y = node.output();
  const auto starts = constant_ints(node, 1), ends = constant_ints(node, 2), given = constant_ints(node, 3),
             steps = constant_ints(node, 4);
  if (!starts || !ends || (node.has_input(3) && !given) || (node.has_input(4) && !steps)) return;
  if (!ranks_known({x, y})) return;
  const std::vector<size_t> axes = normal_axes(node, given ? *given : all_axes(starts->size()), t.rank(x));
  tie_all_axes(t, x, y, axes);
  for (size_t k = 0; k < axes.size(); ++k) {
    const size_t axis = axes[k];
    if ((steps && (*steps)[k] != 1) || !is_whole(t, x, axis) || !is_whole(t, y, axis)) continue;
    const int64_t size = t.size(x, axis), start = (*starts)[k];
    const int64_t first = std::clamp<int64_t>(start < 0 ? std::max(start, -size) + size : start, 0, size);
    for (int64_t i = 0; i < size; ++i) t.mention(t.place(x, axis, i));
    for (int64_t i = 0; i < t.size(y, axis); ++i) t.tie(t.place(x, axis, first + i), t.place(y, axis, i));
  }
}

void tie_pad(const Node& node, IndexTies& t) {
  const Value *x = node.input(0), *y = node.output();
  const auto pads = constant_ints(node, 1), given = constant_ints(node, 3);
  if (!pads || (node.has_input(3) && !given) || !ranks_known({x, y})) return;
  const std::vector<size_t> axes = normal_axes(node, given ? *given : all_axes(t.rank(x)), t.rank(x));
  std::vector<size_t> padded;
  for (size_t k = 0; k < axes.size(); ++k)
    if ((*pads)[k] != 0 || (*pads)[k + axes.size()] != 0) padded.push_back(axes[k]);
  tie_all_axes(t, x, y, padded);
}

// Axes that keep every element: of scale 1, or of a stated size that is their own.
void tie_resize(const Node& node, IndexTies& t) {
  const Value *x = node.input(0), *y = node.output();
  if (!ranks_known({x, y}) || node.get_string("coordinate_transformation_mode") == "tf_crop_and_resize" ||
      node.get_string("keep_aspect_ratio_policy", "stretch") != "stretch")
    return;
  const std::vector<int64_t> stated = node.get_ints("axes");
  const std::vector<size_t> axes = normal_axes(node, stated.empty() ? all_axes(t.rank(x)) : stated, t.rank(x));
  std::vector<size_t> resized = axes;
  if (has_value(node, 3)) {
    if (!constant_ints(node, 3)) return;
    std::erase_if(resized, [&](size_t axis) { return t.size(x, axis) == t.size(y, axis); });
  } else {
    const auto scales = constant_floats(node, 2);
    if (!scales) return;
    for (size_t k = 0; k < axes.size(); ++k)
      if ((*scales)[k] == 1.0f) std::erase(resized, axes[k]);
  }
  tie_all_axes(t, x, y, resized);
}

// Channel c of the output is made of blocksize^2 channels of the input.
void tie_depth_to_space(const Node& node, IndexTies& t) {
  const Value *x = node.input(0), *y = node.output();
  if (t.rank(x) != 4 || t.rank(y) != 4) return;
  const int64_t block = node.get_int("blocksize"), parts = block * block, channels = t.size(y, 1);
  const bool depth_first = node.get_string("mode", "DCR") == "DCR";  // the channels of one place lie together
  t.tie_axes(x, 0, y, 0);
  if (t.size(x, 1) != channels * parts) return;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t k = 0; k < parts; ++k)
      t.tie(t.place(x, 1, depth_first ? k * channels + c : c * parts + k), t.place(y, 1, c));
}

}  // namespace octet::ir
