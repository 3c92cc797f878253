// Evaluation of matrix products.
#include "ir/evaluate_parts.h"
#include "ir/evaluate_rules.h"

namespace octet::ir {

Tensors evaluate_gemm(const Node& node, MemoryBudget& budget) {
  const Shape& shape = output_shape(node);
  if (!is_float(node.output()->type.data_type)) return std::nullopt;
  budget.charge(8 * element_count(shape));
  const std::vector<double> a = doubles_of(node, 0), b = doubles_of(node, 1);
  const bool ta = node.get_int("transA") != 0, tb = node.get_int("transB") != 0;
  const auto rows = static_cast<size_t>(shape[0]), columns = static_cast<size_t>(shape[1]);
  const auto depth = static_cast<size_t>(tensor_of(node, 0).shape()[ta ? 0 : 1]);
  std::vector<double> y(rows * columns, 0.0);
  if (node.has_input(2)) y = to_doubles(expand(tensor_of(node, 2), shape, budget));
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (size_t k = 0; k < depth; ++k)
        sum += a[ta ? k * rows + i : i * depth + k] * b[tb ? j * depth + k : k * columns + j];
      double& out = y[i * columns + j];
      out = sum * node.get_float("alpha") + out * node.get_float("beta");
    }
  return only_output(node, y);
}

Tensors evaluate_matmul(const Node& node, MemoryBudget& budget) {
  const Tensor &left = tensor_of(node, 0), &right = tensor_of(node, 1);
  const Shape& shape = output_shape(node);
  if (!is_float(node.output()->type.data_type)) return std::nullopt;
  budget.charge(8 * element_count(shape));
  // A vector on the left is a row, one on the right a column; that axis is not in the result.
  Shape a = left.shape(), b = right.shape();
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  const auto rows = static_cast<size_t>(a[a.size() - 2]), depth = static_cast<size_t>(a.back()),
             columns = static_cast<size_t>(b.back());
  // The matrices broadcast over the axes before the last two.
  const Shape batch(shape.begin(), shape.end() - (row ? 0 : 1) - (column ? 0 : 1));
  const auto matrices = [&](const Tensor& x, const Shape& own) {
    Shape all = batch;
    all.insert(all.end(), own.end() - 2, own.end());
    return to_doubles(expand(x.with_shape(own), all, budget));
  };
  const std::vector<double> x = matrices(left, a), w = matrices(right, b);
  std::vector<double> y(static_cast<size_t>(element_count(shape)), 0.0);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t matrix = i / columns / rows, r = i / columns % rows, c = i % columns;
    for (size_t k = 0; k < depth; ++k)
      y[i] += x[(matrix * rows + r) * depth + k] * w[(matrix * depth + k) * columns + c];
  }
  return only_output(node, y);
}

}  // namespace octet::ir
