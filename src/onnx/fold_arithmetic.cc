// Element-wise arithmetic, casts, ranges and reductions of constants. Integers are computed in int64 (wrapping, as the
// processor does), floats in double and rounded once, which equals float arithmetic for + - * / and sqrt.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <unordered_map>

#include "ir/data_type_codes.h"
#include "onnx/fold_internal.h"

namespace octet::onnx::internal {
namespace {

using ir::DataType;
using ir::Shape;
using ir::Tensor;

bool is_integer(DataType type) {
  return type == DataType::kInt8 || type == DataType::kUInt8 || type == DataType::kInt32 || type == DataType::kInt64 ||
         type == DataType::kBool;
}
// 16-bit floats are read, never computed with.
bool is_float(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat64;
}

std::vector<double> to_doubles(const Tensor& t) {
  if (t.data_type() == DataType::kFloat64) {
    const auto values = t.values<double>();
    return {values.begin(), values.end()};
  }
  if (is_integer(t.data_type())) {
    const std::vector<int64_t> values = t.to_ints();
    return {values.begin(), values.end()};
  }
  const std::vector<float> values = t.to_floats();
  return {values.begin(), values.end()};
}

// Conversion as C does where it is defined; saturating elsewhere, NaN to 0.
template <typename To, typename From>
To converted(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename To, typename From>
Tensor packed(const Shape& shape, const std::vector<From>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(To));
  for (size_t i = 0; i < values.size(); ++i) {
    const To value = converted<To>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
  return Tensor(ir::internal::DataTypeOf<To>::value, shape, std::move(bytes));
}

template <typename From>
Outputs typed(DataType type, const Shape& shape, const std::vector<From>& values) {
  switch (type) {
    case DataType::kFloat32:
      return {{packed<float>(shape, values)}};
    case DataType::kFloat64:
      return {{packed<double>(shape, values)}};
    case DataType::kInt8:
      return {{packed<int8_t>(shape, values)}};
    case DataType::kUInt8:
      return {{packed<uint8_t>(shape, values)}};
    case DataType::kInt32:
      return {{packed<int32_t>(shape, values)}};
    case DataType::kInt64:
      return {{packed<int64_t>(shape, values)}};
    case DataType::kBool:
      return {{packed<bool>(shape, values)}};
    default:
      return std::nullopt;
  }
}

int64_t wrap(uint64_t v) {
  return static_cast<int64_t>(v);
}

int64_t divide(int64_t a, int64_t b) {
  if (b == 0) fail("a division by zero");
  return b == -1 ? wrap(0 - static_cast<uint64_t>(a)) : a / b;
}
int64_t modulo(int64_t a, int64_t b) {
  if (b == 0) fail("a division by zero");
  const int64_t r = b == -1 ? 0 : a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
int64_t power(int64_t a, int64_t b) {
  return converted<int64_t>(std::pow(static_cast<double>(a), static_cast<double>(b)));
}

struct Binary {
  int64_t (*ints)(int64_t, int64_t);
  double (*floats)(double, double);
  bool to_bool = false;
};

const std::unordered_map<std::string_view, Binary>& binaries() {
  using I = int64_t;
  using U = uint64_t;
  using D = double;
  static const std::unordered_map<std::string_view, Binary> table = {
      {"Add", {[](I a, I b) { return wrap(U(a) + U(b)); }, [](D a, D b) { return a + b; }}},
      {"Sub", {[](I a, I b) { return wrap(U(a) - U(b)); }, [](D a, D b) { return a - b; }}},
      {"Mul", {[](I a, I b) { return wrap(U(a) * U(b)); }, [](D a, D b) { return a * b; }}},
      {"Div", {divide, [](D a, D b) { return a / b; }}},
      {"Mod", {modulo, [](D a, D b) { return std::fmod(a, b); }}},
      {"Pow", {power, [](D a, D b) { return std::pow(a, b); }}},
      {"Min", {[](I a, I b) { return std::min(a, b); }, [](D a, D b) { return std::min(a, b); }}},
      {"Max", {[](I a, I b) { return std::max(a, b); }, [](D a, D b) { return std::max(a, b); }}},
      {"Equal", {[](I a, I b) { return I(a == b); }, [](D a, D b) { return D(a == b); }, true}},
      {"Less", {[](I a, I b) { return I(a < b); }, [](D a, D b) { return D(a < b); }, true}},
      {"Greater", {[](I a, I b) { return I(a > b); }, [](D a, D b) { return D(a > b); }, true}},
      {"LessOrEqual", {[](I a, I b) { return I(a <= b); }, [](D a, D b) { return D(a <= b); }, true}},
      {"GreaterOrEqual", {[](I a, I b) { return I(a >= b); }, [](D a, D b) { return D(a >= b); }, true}},
      {"And", {[](I a, I b) { return I(a && b); }, [](D a, D b) { return D(a && b); }, true}},
      {"Or", {[](I a, I b) { return I(a || b); }, [](D a, D b) { return D(a || b); }, true}},
  };
  return table;
}

struct Unary {
  int64_t (*ints)(int64_t);
  double (*floats)(double);
};

const std::unordered_map<std::string_view, Unary>& unaries() {
  using I = int64_t;
  using D = double;
  static const std::unordered_map<std::string_view, Unary> table = {
      {"Neg", {[](I a) { return wrap(0 - static_cast<uint64_t>(a)); }, [](D a) { return -a; }}},
      {"Abs", {[](I a) { return a < 0 ? wrap(0 - static_cast<uint64_t>(a)) : a; }, [](D a) { return std::fabs(a); }}},
      {"Not", {[](I a) { return I(!a); }, nullptr}},
      {"Sign", {[](I a) { return I((a > 0) - (a < 0)); }, [](D a) { return D((a > 0) - (a < 0)); }}},
      {"Floor", {nullptr, [](D a) { return std::floor(a); }}},
      {"Ceil", {nullptr, [](D a) { return std::ceil(a); }}},
      {"Round", {nullptr, [](D a) { return std::nearbyint(a); }}},
      {"Sqrt", {nullptr, [](D a) { return std::sqrt(a); }}},
      {"Exp", {nullptr, [](D a) { return std::exp(a); }}},
      {"Log", {nullptr, [](D a) { return std::log(a); }}},
      {"Reciprocal", {nullptr, [](D a) { return 1 / a; }}},
  };
  return table;
}

Outputs binary(const FoldRequest& r, const Binary& op, FoldBudget& budget) {
  Tensor left = required(r, 0);
  if (r.inputs.size() == 1) return {{left}};
  for (size_t i = 1; i < r.inputs.size(); ++i) {  // Min and Max take any number
    const Tensor& right = required(r, i);
    const DataType type = left.data_type();
    if (type != right.data_type() && !(r.op == "Pow" && is_integer(type) == is_integer(right.data_type())))
      return std::nullopt;
    const Shape shape = broadcast_shapes(left.shape(), right.shape());
    const Tensor a = expand(left, shape, budget), b = expand(right, shape, budget);
    budget.charge(8 * a.size());
    Outputs out;
    if (is_integer(type)) {
      const std::vector<int64_t> x = a.to_ints(), y = b.to_ints();
      std::vector<int64_t> z(x.size());
      for (size_t k = 0; k < z.size(); ++k) z[k] = op.ints(x[k], y[k]);
      out = typed(op.to_bool ? DataType::kBool : type, shape, z);
    } else if (is_float(type)) {
      const std::vector<double> x = to_doubles(a), y = to_doubles(b);
      std::vector<double> z(x.size());
      for (size_t k = 0; k < z.size(); ++k) z[k] = op.floats(x[k], y[k]);
      out = typed(op.to_bool ? DataType::kBool : type, shape, z);
    }
    if (!out) return out;
    left = out->front();
  }
  return {{left}};
}

Outputs unary(const FoldRequest& r, const Unary& op, FoldBudget& budget) {
  const Tensor& x = required(r, 0);
  budget.charge(8 * x.size());
  if (is_integer(x.data_type()) && op.ints) {
    std::vector<int64_t> values = x.to_ints();
    std::transform(values.begin(), values.end(), values.begin(), op.ints);
    return typed(x.data_type(), x.shape(), values);
  }
  if (is_float(x.data_type()) && op.floats) {
    std::vector<double> values = to_doubles(x);
    std::transform(values.begin(), values.end(), values.begin(), op.floats);
    return typed(x.data_type(), x.shape(), values);
  }
  return std::nullopt;
}

Outputs cast(const FoldRequest& r, FoldBudget& budget) {
  const Tensor& x = required(r, 0);
  const DataType to = ir::data_type_from_onnx(int_attribute(r.attributes, "to", 0));
  if (to == x.data_type()) return {{x}};
  if (to == DataType::kUndefined) return std::nullopt;
  budget.charge(8 * x.size());
  return is_integer(x.data_type()) ? typed(to, x.shape(), x.to_ints()) : typed(to, x.shape(), to_doubles(x));
}

Outputs range(const FoldRequest& r, FoldBudget& budget) {
  for (size_t i = 0; i < 3; ++i)
    if (required(r, i).size() != 1 || required(r, i).data_type() != required(r, 0).data_type()) return std::nullopt;
  const double start = to_doubles(*r.inputs[0])[0], limit = to_doubles(*r.inputs[1])[0],
               step = to_doubles(*r.inputs[2])[0];
  const double count = std::max(std::ceil((limit - start) / step), 0.0);
  if (!(step != 0) || !(count <= 1e8)) fail("a range from ", start, " to ", limit, " by ", step);
  budget.charge(8 * static_cast<int64_t>(count));
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<double>(i) * step;
  return typed(r.inputs[0]->data_type(), {static_cast<int64_t>(values.size())}, values);
}

Outputs reduce(const FoldRequest& r, FoldBudget& budget) {
  const Tensor& x = required(r, 0);
  if (!is_integer(x.data_type()) && !is_float(x.data_type())) return std::nullopt;
  std::vector<bool> reduced(x.shape().size(), true);
  if (r.inputs.size() > 1 && r.inputs[1]) {
    const std::vector<int64_t> axes = r.inputs[1]->to_ints();
    if (!axes.empty()) reduced.assign(reduced.size(), false);
    if (axes.empty() && int_attribute(r.attributes, "noop_with_empty_axes", 0) != 0) return {{x}};
    for (const int64_t axis : axes) reduced[normal_axis(axis, reduced.size())] = true;
  } else if (int_attribute(r.attributes, "noop_with_empty_axes", 0) != 0) {
    return {{x}};
  }
  const bool keep = int_attribute(r.attributes, "keepdims", 1) != 0;
  Shape shape;
  std::vector<int64_t> strides(reduced.size(), 0);
  int64_t outputs = 1, together = 1;
  for (size_t i = reduced.size(); i-- > 0;) {
    if (reduced[i]) {
      together *= x.shape()[i];
    } else {
      strides[i] = outputs;
      outputs *= x.shape()[i];
    }
  }
  for (size_t i = 0; i < reduced.size(); ++i)
    if (!reduced[i] || keep) shape.push_back(reduced[i] ? 1 : x.shape()[i]);
  if (together == 0 || outputs == 0) return std::nullopt;
  budget.charge(8 * (outputs + x.size()));
  const bool integer = is_integer(x.data_type());
  const Binary& op = binaries().at(r.op == "ReduceProd"  ? "Mul"
                                   : r.op == "ReduceMin" ? "Min"
                                   : r.op == "ReduceMax" ? "Max"
                                                         : "Add");
  const std::vector<int64_t> ints = integer ? x.to_ints() : std::vector<int64_t>();
  const std::vector<double> floats = integer ? std::vector<double>() : to_doubles(x);
  std::vector<int64_t> int_sums(static_cast<size_t>(outputs));
  std::vector<double> float_sums(static_cast<size_t>(outputs));
  std::vector<bool> started(static_cast<size_t>(outputs), false);
  std::vector<int64_t> index(reduced.size(), 0);
  for (size_t i = 0; i < static_cast<size_t>(x.size()); ++i) {
    size_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += static_cast<size_t>(index[d] * strides[d]);
    if (integer)
      int_sums[at] = started[at] ? op.ints(int_sums[at], ints[i]) : ints[i];
    else
      float_sums[at] = started[at] ? op.floats(float_sums[at], floats[i]) : floats[i];
    started[at] = true;
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < x.shape()[d]) break;
      index[d] = 0;
    }
  }
  if (r.op == "ReduceMean") {
    for (int64_t& v : int_sums) v /= together;
    for (double& v : float_sums) v /= static_cast<double>(together);
  }
  return integer ? typed(x.data_type(), shape, int_sums) : typed(x.data_type(), shape, float_sums);
}

bool is_reduction(std::string_view op) {
  return op == "ReduceProd" || op == "ReduceMin" || op == "ReduceMax" || op == "ReduceSum" || op == "ReduceMean";
}

}  // namespace

bool is_arithmetic(std::string_view op) {
  return binaries().count(op) || unaries().count(op) || op == "Cast" || op == "Range" || is_reduction(op);
}

Outputs fold_arithmetic(const FoldRequest& r, FoldBudget& budget) {
  if (const auto it = binaries().find(r.op); it != binaries().end()) return binary(r, it->second, budget);
  if (const auto it = unaries().find(r.op); it != unaries().end()) return unary(r, it->second, budget);
  if (r.op == "Cast") return cast(r, budget);
  if (r.op == "Range") return range(r, budget);
  if (is_reduction(r.op)) return reduce(r, budget);
  return std::nullopt;
}

}  // namespace octet::onnx::internal
