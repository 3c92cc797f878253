#include "onnx/fold.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "ir/axes.h"
#include "onnx/fold_rules.h"

namespace octet::onnx {

const ir::Tensor& required(const FoldRequest& r, size_t index) {
  if (index >= r.inputs.size() || !r.inputs[index]) fail("required input ", index, " is absent");
  return *r.inputs[index];
}

std::vector<int64_t> int_input(const FoldRequest& r, size_t index) {
  const ir::Tensor& tensor = required(r, index);
  if (tensor.data_type() != ir::DataType::kInt64 && tensor.data_type() != ir::DataType::kInt32)
    fail("input ", index, " should hold integers, not ", ir::data_type_name(tensor.data_type()));
  return tensor.to_ints();
}

int64_t int_attribute(const FoldRequest& r, const char* key, int64_t fallback) {
  const auto it = r.attributes.find(key);
  if (it == r.attributes.end()) return fallback;
  const int64_t* value = std::get_if<int64_t>(&it->second);
  if (!value) fail("attribute '", key, "' should be an integer");
  return *value;
}

namespace {

using ir::DataType;
using ir::MemoryBudget;
using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using Outputs = FoldedOutputs;

ir::Node node_of(const FoldRequest& r, OpKind kind) {
  return {kind, r.name, {}, std::vector<ir::Value*>(r.outputs, nullptr), r.attributes};
}

Outputs gather(const FoldRequest& r, MemoryBudget& budget) {
  const Tensor &x = required(r, 0), &at = required(r, 1);
  const size_t axis = ir::normal_axis(int_attribute(r, "axis", 0), x.shape().size());
  std::vector<ir::AxisPath> paths = ir::own_paths(x);
  budget.charge(8 * at.size());
  for (const int64_t index : int_input(r, 1)) {
    const size_t normal = ir::normal_axis(index, static_cast<size_t>(x.shape()[axis]));
    paths[axis].offsets.push_back(static_cast<int64_t>(normal) * paths[axis].step);
  }
  Shape row = x.shape(), shape = x.shape();
  row[axis] = at.size();
  const auto place = shape.erase(shape.begin() + static_cast<int64_t>(axis));
  shape.insert(place, at.shape().begin(), at.shape().end());
  return {{ir::take(x, row, paths, budget).with_shape(shape)}};
}

Outputs tile(const FoldRequest& r, MemoryBudget& budget) {
  const Tensor& x = required(r, 0);
  const std::vector<int64_t> repeats = int_input(r, 1);
  if (repeats.size() != x.shape().size()) fail("repeats does not fit a tensor of rank ", x.shape().size());
  // [a, b] is seen as [1, a, 1, b], broadcast, and joined again.
  Shape open, wide, shape;
  for (size_t i = 0; i < repeats.size(); ++i) {
    open.insert(open.end(), {1, x.shape()[i]});
    wide.insert(wide.end(), {repeats[i], x.shape()[i]});
    shape.push_back(ir::bounded_count({repeats[i], x.shape()[i]}));
  }
  return {{ir::expand(x.with_shape(open), wide, budget).with_shape(shape)}};
}

Outputs where(const FoldRequest& r, MemoryBudget& budget) {
  const Tensor &condition = required(r, 0), &x = required(r, 1), &y = required(r, 2);
  if (condition.data_type() != DataType::kBool || x.data_type() != y.data_type())
    fail("the condition should be bool, and both choices of one type");
  const Shape shape = ir::broadcast(condition.shape(), ir::broadcast(x.shape(), y.shape()));
  const Tensor c = expand(condition, shape, budget), a = expand(x, shape, budget), b = expand(y, shape, budget);
  budget.charge(static_cast<int64_t>(b.bytes().size()));
  std::vector<std::byte> bytes(b.bytes().begin(), b.bytes().end());
  const size_t step = ir::data_type_size(x.data_type());
  for (size_t i = 0; i < static_cast<size_t>(c.size()); ++i)
    if (c.bytes()[i] != std::byte{0}) std::memcpy(bytes.data() + i * step, a.bytes().data() + i * step, step);
  return {{Tensor(x.data_type(), shape, std::move(bytes))}};
}

Outputs constant_of_shape(const FoldRequest& r, MemoryBudget& budget) {
  Tensor value = Tensor::scalar(0.0f);
  if (const auto it = r.attributes.find("value"); it != r.attributes.end()) {
    const Tensor* given = std::get_if<Tensor>(&it->second);
    if (!given || given->size() != 1) fail("value should be a tensor of one element");
    value = given->with_shape({});
  }
  return {{ir::expand(value, int_input(r, 0), budget)}};
}

Outputs range(const FoldRequest& r, MemoryBudget& budget) {
  for (size_t i = 0; i < 3; ++i)
    if (required(r, i).size() != 1 || required(r, i).data_type() != required(r, 0).data_type()) return std::nullopt;
  const double start = ir::to_doubles(*r.inputs[0])[0], limit = ir::to_doubles(*r.inputs[1])[0],
               step = ir::to_doubles(*r.inputs[2])[0];
  const double count = std::max(std::ceil((limit - start) / step), 0.0);
  if (!(step != 0) || !(count <= 1e8)) fail("a range from ", start, " to ", limit, " by ", step);
  budget.charge(8 * static_cast<int64_t>(count));
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<double>(i) * step;
  const auto out = ir::packed(r.inputs[0]->data_type(), {static_cast<int64_t>(values.size())}, values);
  return out ? Outputs({*out}) : std::nullopt;
}

// The sign is that of b, or with fmod that of a; floats know fmod only.
Outputs modulo(const FoldRequest& r, MemoryBudget& budget) {
  const Tensor &a = required(r, 0), &b = required(r, 1);
  const bool fmod = int_attribute(r, "fmod", 0) != 0;
  if (a.data_type() != b.data_type()) return std::nullopt;
  const auto of_ints = [=](int64_t x, int64_t y) {
    if (y == 0) fail("a division by zero");
    const int64_t rest = y == -1 ? 0 : x % y;
    return !fmod && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  };
  const auto out = ir::zip(a, b, {of_ints, [](double x, double y) { return std::fmod(x, y); }}, budget);
  return out ? Outputs({*out}) : std::nullopt;
}

// The operators that have no place in the graph.
struct Row {
  std::function<Outputs(const FoldRequest&, MemoryBudget&)> rule;
  bool moves = false;
};

Row unary(ir::Unary f) {
  return {[=](const FoldRequest& r, MemoryBudget& budget) -> Outputs {
    const auto out = ir::map(required(r, 0), f, budget);
    return out ? Outputs({*out}) : std::nullopt;
  }};
}

Row binary(ir::Binary f, std::optional<DataType> result = std::nullopt) {
  return {[=](const FoldRequest& r, MemoryBudget& budget) -> Outputs {
    const Tensor &a = required(r, 0), &b = required(r, 1);
    if (a.data_type() != b.data_type()) return std::nullopt;
    const auto out = ir::zip(a, b, f, budget, result);
    return out ? Outputs({*out}) : std::nullopt;
  }};
}

template <typename Test>
Row comparison(Test test) {
  return binary({[=](int64_t a, int64_t b) { return static_cast<int64_t>(test(a, b)); },
                 [=](double a, double b) { return static_cast<double>(test(a, b)); }},
                DataType::kBool);
}

Row reduction(OpKind of_two) {
  return {[=](const FoldRequest& r, MemoryBudget& budget) {
    return ir::reduce(ir::Alone(node_of(r, OpKind::kReduceSum), r.inputs).node(), ir::binary_of(of_two), budget);
  }};
}

const std::unordered_map<std::string_view, Row>& only_onnx() {
  using I = int64_t;
  using D = double;
  static const std::unordered_map<std::string_view, Row> table = {
      {"Gather", {gather, true}},
      {"Tile", {tile, true}},
      {"Where", {where, true}},
      {"ConstantOfShape", {constant_of_shape, true}},
      {"Range", {range}},
      {"Not", unary({[](I a) { return I{!a}; }, nullptr})},
      {"Sign", unary({[](I a) { return I{(a > 0) - (a < 0)}; }, [](D a) { return D((a > 0) - (a < 0)); }})},
      {"Ceil", unary({nullptr, [](D a) { return std::ceil(a); }})},
      {"Round", unary({nullptr, [](D a) { return std::nearbyint(a); }})},
      {"Sin", unary({nullptr, [](D a) { return std::sin(a); }})},
      {"Cos", unary({nullptr, [](D a) { return std::cos(a); }})},
      {"IsNaN", {fold_is_nan}},
      {"Trilu", {fold_trilu}},
      {"CumSum", {fold_cumulative_sum}},
      {"GatherElements", {fold_gather_elements, true}},
      {"GatherND", {fold_gather_nd, true}},
      {"NonZero", {fold_non_zero}},
      {"OneHot", {fold_one_hot}},
      {"EyeLike", {fold_eye_like}},
      {"Reciprocal", unary({nullptr, [](D a) { return 1 / a; }})},
      {"Mod", {modulo}},
      {"Equal", comparison([](auto a, auto b) { return a == b; })},
      {"Less", comparison([](auto a, auto b) { return a < b; })},
      {"Greater", comparison([](auto a, auto b) { return a > b; })},
      {"LessOrEqual", comparison([](auto a, auto b) { return a <= b; })},
      {"GreaterOrEqual", comparison([](auto a, auto b) { return a >= b; })},
      {"And", comparison([](auto a, auto b) { return a && b; })},
      {"Or", comparison([](auto a, auto b) { return a || b; })},
      {"Xor", comparison([](auto a, auto b) { return (a != 0) != (b != 0); })},
      {"ReduceProd", reduction(OpKind::kMul)},
      {"ReduceMin", reduction(OpKind::kMin)}};
  return table;
}

}  // namespace

std::vector<std::string> folded_operators() {
  std::vector<std::string> names;
  for (const auto& [name, row] : only_onnx()) names.emplace_back(name);
  return names;
}

bool can_fold(std::string_view op) {
  if (only_onnx().count(op)) return true;
  const ir::OpInfo* info = ir::find_op(op);
  if (!info) return false;
  return info->has(ir::trait::kElementwise) || info->has(ir::trait::kMoves) || info->kind == OpKind::kCast ||
         info->kind == OpKind::kReduceMax || info->kind == OpKind::kReduceMean || info->kind == OpKind::kReduceSum;
}

bool only_moves(std::string_view op) {
  const auto it = only_onnx().find(op);
  if (it != only_onnx().end()) return it->second.moves;
  const ir::OpInfo* info = ir::find_op(op);
  return info && info->has(ir::trait::kMoves);
}

Outputs fold(const FoldRequest& request, MemoryBudget& budget) {
  const auto it = only_onnx().find(request.op);
  if (it != only_onnx().end()) return it->second.rule(request, budget);
  return ir::evaluate(node_of(request, ir::find_op(request.op)->kind), request.inputs, budget);
}

}  // namespace octet::onnx
