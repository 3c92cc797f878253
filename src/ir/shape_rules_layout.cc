// Shape rules of nodes that view, permute or join whole axes.
#include <algorithm>

#include "ir/shape_rule_util.h"
#include "ir/shape_rules.h"

namespace octet::ir {
namespace {

// The dimension that a -1 in a Reshape target stands for.
int64_t inferred_dim(const Node& node, const Shape& in, const Shape& target, const std::vector<bool>& copied) {
  // Copied dimensions stand on both sides, so they cancel even when they are dynamic.
  int64_t from = 1, to = 1;
  for (size_t i = 0; i < in.size(); ++i)
    if (i >= copied.size() || !copied[i]) from = multiply_dims(node, from, in[i]);
  for (size_t i = 0; i < target.size(); ++i)
    if (!copied[i] && target[i] != -1) to = multiply_dims(node, to, target[i]);
  if (from == kDynamic) return kDynamic;
  if (to == 0 || from % to != 0)
    misfit(node, input_text(node, 0), " cannot be reshaped to ", shape_string(target), " (-1 shown as ?): ", from,
           " elements are not a multiple of ", to);
  return from / to;
}

}  // namespace

void infer_reshape(Node& node) {
  const Shape* x = input_shape(node, 0);
  const auto wanted = constant_ints(node, 1);
  if (!wanted) {
    const Shape* length = input_shape(node, 1);
    if (!length || length->size() != 1 || length->front() == kDynamic || length->front() > 64) return set_unknown(node);
    return set_output(node, 0, input_data_type(node, 0), Shape(static_cast<size_t>(length->front()), kDynamic));
  }
  Shape out = *wanted;
  if (out.size() > 64) misfit(node, "the target of ", out.size(), " dimensions is too long");
  std::vector<bool> copied(out.size(), false);
  size_t unknown = out.size();
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] < -1 || out[i] > kMaxDimension) misfit(node, "the target ", shape_string(out), " holds ", out[i]);
    if (out[i] == -1) {
      if (unknown != out.size()) misfit(node, "the target ", shape_string(out), " holds -1 twice");
      unknown = i;
    }
    if (out[i] != 0 || node.get_int("allowzero") != 0) continue;
    copied[i] = true;
    if (!x) {
      out[i] = kDynamic;
    } else if (i < x->size()) {
      out[i] = (*x)[i];
    } else {
      misfit(node, "the target copies dimension ", i, ", which ", input_text(node, 0), " does not have");
    }
  }
  if (unknown != out.size()) {
    out[unknown] = x ? inferred_dim(node, *x, out, copied) : kDynamic;
  } else if (x && is_static(*x) && is_static(out)) {
    int64_t from = 1, to = 1;
    for (const int64_t d : *x) from = multiply_dims(node, from, d);
    for (const int64_t d : out) to = multiply_dims(node, to, d);
    if (from != to)
      misfit(node, input_text(node, 0), " (", from, " elements) cannot be reshaped to ", shape_string(out), " (", to,
             " elements)");
  }
  set_output(node, 0, input_data_type(node, 0), out);
}

void infer_flatten(Node& node) {
  const Shape* x = input_shape(node, 0);
  if (!x) return set_output(node, 0, input_data_type(node, 0), Shape{kDynamic, kDynamic});
  const auto rank = static_cast<int64_t>(x->size());
  int64_t axis = node.get_int("axis", 1);
  if (axis < -rank || axis > rank) misfit(node, "axis ", axis, " is outside of ", input_text(node, 0));
  if (axis < 0) axis += rank;
  Shape out = {1, 1};
  for (int64_t i = 0; i < rank; ++i) {
    int64_t& side = out[i < axis ? 0 : 1];
    side = multiply_dims(node, side, (*x)[static_cast<size_t>(i)]);
  }
  set_output(node, 0, input_data_type(node, 0), out);
}

void infer_squeeze(Node& node) {
  const Shape* x = input_shape(node, 0);
  const auto axes = constant_ints(node, 1);
  if (!x || (node.has_input(1) && !axes)) return set_unknown(node);
  std::vector<bool> removed(x->size(), false);
  if (axes) {
    for (const size_t axis : normal_axes(node, *axes, x->size())) {
      if ((*x)[axis] != 1 && (*x)[axis] != kDynamic)
        misfit(node, "axis ", axis, " of ", input_text(node, 0), " has ", (*x)[axis], " elements, expected 1");
      removed[axis] = true;
    }
  } else {
    if (!is_static(*x)) return set_unknown(node);  // a dynamic dimension may turn out to be 1
    for (size_t i = 0; i < x->size(); ++i) removed[i] = (*x)[i] == 1;
  }
  Shape out;
  for (size_t i = 0; i < x->size(); ++i)
    if (!removed[i]) out.push_back((*x)[i]);
  set_output(node, 0, input_data_type(node, 0), out);
}

void infer_unsqueeze(Node& node) {
  const Shape* x = input_shape(node, 0);
  const auto axes = constant_ints(node, 1);
  if (!x || !axes) return set_unknown(node);
  const size_t rank = x->size() + axes->size();
  std::vector<bool> added(rank, false);
  for (const size_t axis : normal_axes(node, *axes, rank)) added[axis] = true;
  Shape out;
  auto next = x->begin();
  for (size_t i = 0; i < rank; ++i) out.push_back(added[i] ? 1 : *next++);
  set_output(node, 0, input_data_type(node, 0), out);
}

void infer_transpose(Node& node) {
  const Shape* x = input_shape(node, 0);
  const std::vector<int64_t> permutation = permutation_of(node, x ? x->size() : node.get_ints("perm").size());
  if (!x) return set_unknown(node);
  Shape out;
  for (const int64_t axis : permutation) out.push_back((*x)[static_cast<size_t>(axis)]);
  set_output(node, 0, input_data_type(node, 0), out);
}

void infer_expand(Node& node) {
  const Shape* x = input_shape(node, 0);
  const auto target = constant_ints(node, 1);
  if (!x || !target) return set_unknown(node);
  for (const int64_t d : *target)
    if (d < 0 || d > kMaxDimension) misfit(node, "the target shape holds ", d);
  set_output(node, 0, input_data_type(node, 0), broadcast(node, *x, *target));
}

void infer_concat(Node& node) {
  if (!node.has("axis")) misfit(node, "attribute axis is missing");
  std::optional<Shape> out;
  bool known = true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    require_same_data_type(node, 0, i);
    const Shape* x = input_shape(node, i);
    if (!x) known = false;
    if (!x || !known) continue;
    const size_t axis = normal_axis(node, node.get_int("axis"), x->size());
    if (!out) {
      out = *x;
      continue;
    }
    if (x->size() != out->size())
      misfit(node, input_text(node, i), " has rank ", x->size(), ", expected ", out->size(), " as ",
             input_text(node, 0));
    for (size_t d = 0; d < out->size(); ++d) {
      if (d == axis) {
        (*out)[d] = add_dims(node, (*out)[d], (*x)[d]);
      } else if ((*out)[d] == kDynamic) {
        (*out)[d] = (*x)[d];
      } else if ((*x)[d] != kDynamic && (*x)[d] != (*out)[d]) {
        misfit(node, input_text(node, i), " differs from ", input_text(node, 0), " in dimension ", d,
               "; only that of axis ", axis, " may differ");
      }
    }
  }
  set_output(node, 0, input_data_type(node, 0), known ? std::move(out) : std::nullopt);
}

void infer_depth_to_space(Node& node) {
  require_rank(node, 0, 4, 4);
  const int64_t block = node.get_int("blocksize");
  if (block < 1 || block > 1024) misfit(node, "blocksize is ", block, ", expected 1 to 1024");
  const std::string mode = node.get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") misfit(node, "mode is '", mode, "', expected DCR or CRD");
  const Shape* x = input_shape(node, 0);
  if (!x) return set_unknown(node);
  const int64_t channels = (*x)[1];
  if (channels != kDynamic && channels % (block * block) != 0)
    misfit(node, input_text(node, 0), ": ", channels, " channels are not a multiple of blocksize² = ", block * block);
  set_output(node, 0, input_data_type(node, 0),
             Shape{(*x)[0], channels == kDynamic ? kDynamic : channels / (block * block),
                   multiply_dims(node, (*x)[2], block), multiply_dims(node, (*x)[3], block)});
}

}  // namespace octet::ir
