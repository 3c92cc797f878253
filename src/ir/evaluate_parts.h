// What evaluations are made of: numbers in and out of tensors, one way to move elements, one way to compute element by
// element, and one to reduce. Private to evaluate*.cc and to the operators on constants that only the importer knows
// (onnx/fold.cc).
#pragma once
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/evaluate.h"
#include "ir/shape_rule_util.h"

namespace octet::ir {

// A node of no graph whose inputs are constants (or absent), with the types that its shape rule gives to its outputs.
class Alone {
 public:
  // The attributes and the number of outputs are those of `like`. UserError as infer_node().
  Alone(const Node& like, const std::vector<const Tensor*>& inputs);
  const Node& node() const { return node_; }

 private:
  Node node_;
  std::deque<Value> values_;
};

// --- numbers

bool is_integer(DataType type);  // bool included
bool is_float(DataType type);    // not those of 16 bits, which are read but never computed with

std::vector<double> to_doubles(const Tensor& tensor);
int64_t saturated(double value);  // as C converts; the nearest integer that there is elsewhere, NaN to 0
// A tensor of these numbers, converted likewise. Nothing for 16-bit floats.
std::optional<Tensor> packed(DataType type, const Shape& shape, const std::vector<double>& values);
std::optional<Tensor> packed(DataType type, const Shape& shape, const std::vector<int64_t>& values);

const Tensor& tensor_of(const Node& node, size_t input);
std::vector<double> doubles_of(const Node& node, size_t input);
const Shape& output_shape(const Node& node, size_t index = 0);
// {values} as output 0, of its type and shape.
std::optional<std::vector<Tensor>> only_output(const Node& node, const std::vector<double>& values);

// --- movement. Shapes are checked by bounded_count().

std::vector<int64_t> row_major_strides(const Shape& shape);
// Calls visit(index) for every index of a shape, in row-major order.
template <typename Visit>
void for_each_index(const Shape& shape, Visit visit) {
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t left = element_count(shape); left > 0; --left) {
    visit(index);
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
  }
}

// Where the elements of a result lie in what they are taken from, along one axis of the result: index i adds i * step,
// or offsets[i] where there is such a list. In elements.
struct AxisPath {
  int64_t step = 0;
  std::vector<int64_t> offsets;
};
inline constexpr int64_t kOutside = std::numeric_limits<int64_t>::min();  // an offset: the fill

// Paths along which take() gives `x` back.
std::vector<AxisPath> own_paths(const Tensor& x);
// result[i, j, ...] = x[start + path 0 of i + path 1 of j + ...], or the fill (nullptr: zero), an element of the type
// of x.
Tensor take(const Tensor& x, const Shape& shape, const std::vector<AxisPath>& paths, MemoryBudget& budget,
            int64_t start = 0, const Tensor* fill = nullptr);
// The number of elements; UserError beyond what a constant may have, also for its dimensions.
int64_t bounded_count(const Shape& shape);
// `x` broadcast to `shape`; UserError where it does not fit.
Tensor expand(const Tensor& x, const Shape& shape, MemoryBudget& budget);

// --- arithmetic. An absent function: these numbers are refused.

struct Unary {
  std::function<int64_t(int64_t)> ints;
  std::function<double(double)> floats;
};
struct Binary {
  std::function<int64_t(int64_t, int64_t)> ints;
  std::function<double(double, double)> floats;
};

// f(x), element by element.
std::optional<Tensor> map(const Tensor& x, const Unary& f, MemoryBudget& budget);
// f(a, b) with numpy broadcasting, of the type `result`, or that of a. Nothing where one holds integers and the other
// floats.
std::optional<Tensor> zip(const Tensor& a, const Tensor& b, const Binary& f, MemoryBudget& budget,
                          std::optional<DataType> result = std::nullopt);
// f over all elements along the axes that the node (a ReduceSum, or one with the same attributes and inputs) names,
// with the shape that it gives. Nothing where there are none to reduce. `mean` divides by their number.
std::optional<std::vector<Tensor>> reduce(const Node& node, const Binary& f, MemoryBudget& budget, bool mean = false);

// The arithmetic of Add, Sub, Mul, Div, Pow, Min, Max and PRelu.
Binary binary_of(OpKind kind);

}  // namespace octet::ir
