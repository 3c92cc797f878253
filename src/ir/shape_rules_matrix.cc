// Shape rules of matrix products and reductions.
#include <algorithm>

#include "ir/shape_rule_util.h"
#include "ir/shape_rules.h"

namespace octet::ir {

void infer_gemm(Node& node) {
  require_rank(node, 0, 2, 2);
  require_rank(node, 1, 2, 2);
  require_same_data_type(node, 0, 1);
  const Shape *a = input_shape(node, 0), *b = input_shape(node, 1);
  const bool ta = node.get_int("transA") != 0, tb = node.get_int("transB") != 0;
  const int64_t rows = a ? (*a)[ta ? 1 : 0] : kDynamic, columns = b ? (*b)[tb ? 0 : 1] : kDynamic;
  if (a && b) {
    const int64_t ka = (*a)[ta ? 0 : 1], kb = (*b)[tb ? 1 : 0];
    if (ka != kb && ka != kDynamic && kb != kDynamic)
      misfit(node, input_text(node, 0), " has ", ka, " features, but ", input_text(node, 1), " takes ", kb);
  }
  const Shape out = {rows, columns};
  if (const Shape* c = input_shape(node, 2)) {
    const Shape both = broadcast(node, out, *c);
    for (size_t i = 0; i < both.size(); ++i)
      if (both.size() != 2 || (out[i] != kDynamic && both[i] != out[i]))
        misfit(node, input_text(node, 2), " does not broadcast to ", shape_string(out));
  }
  set_output(node, 0, input_data_type(node, 0), out);
}

void infer_matmul(Node& node) {
  require_rank(node, 0, 1, SIZE_MAX);
  require_rank(node, 1, 1, SIZE_MAX);
  require_same_data_type(node, 0, 1);
  const Shape *pa = input_shape(node, 0), *pb = input_shape(node, 1);
  if (!pa || !pb) return set_output(node, 0, input_data_type(node, 0), std::nullopt);
  Shape a = *pa, b = *pb;
  // As numpy: a vector on the left is a row, one on the right a column; that dimension is not in the result.
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  const int64_t ka = a.back(), kb = b[b.size() - 2];
  if (ka != kb && ka != kDynamic && kb != kDynamic)
    misfit(node, input_text(node, 0), " has ", ka, " columns, but ", input_text(node, 1), " has ", kb, " rows");
  Shape out = broadcast(node, {a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
  if (!row) out.push_back(a[a.size() - 2]);
  if (!column) out.push_back(b.back());
  set_output(node, 0, input_data_type(node, 0), out);
}

void infer_reduce(Node& node) {
  const Shape* x = input_shape(node, 0);
  const bool keep = node.get_int("keepdims", 1) != 0;
  if (!x) return set_output(node, 0, input_data_type(node, 0), std::nullopt);
  std::vector<int64_t> axes = node.get_ints("axes");
  if (has_value(node, 1)) {
    const auto given = constant_ints(node, 1);
    if (!given)
      return set_output(node, 0, input_data_type(node, 0),
                        keep ? std::optional<Shape>(Shape(x->size(), kDynamic)) : std::nullopt);
    axes = *given;
  }
  std::vector<bool> reduced(x->size(), axes.empty() && node.get_int("noop_with_empty_axes") == 0);
  for (const size_t axis : normal_axes(node, axes, x->size())) reduced[axis] = true;
  Shape out;
  for (size_t i = 0; i < x->size(); ++i) {
    if (!reduced[i])
      out.push_back((*x)[i]);
    else if (keep)
      out.push_back(1);
  }
  set_output(node, 0, input_data_type(node, 0), out);
}

void infer_argmax(Node& node) {
  const Shape* x = input_shape(node, 0);
  if (!x) return set_output(node, 0, DataType::kInt64, std::nullopt);
  Shape out = *x;
  const size_t axis = normal_axis(node, node.get_int("axis", 0), x->size());
  if (node.get_int("keepdims", 1) != 0)
    out[axis] = 1;
  else
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  set_output(node, 0, DataType::kInt64, out);
}

}  // namespace octet::ir
