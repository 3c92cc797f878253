// Evaluation of operators that compute each element from those at its place.
#include <algorithm>
#include <cmath>

#include "ir/evaluate_parts.h"
#include "ir/evaluate_rules.h"

namespace octet::ir {
namespace {

// Integer arithmetic wraps, as the processor's does.
int64_t wrap(uint64_t v) {
  return static_cast<int64_t>(v);
}
int64_t negated(int64_t v) {
  return wrap(0 - static_cast<uint64_t>(v));
}
int64_t quotient(int64_t a, int64_t b) {
  if (b == 0) fail("a division by zero");
  return b == -1 ? negated(a) : a / b;
}
// In floating point: beyond 2^53 it is rounded.
int64_t power(int64_t a, int64_t b) {
  return saturated(std::pow(static_cast<double>(a), static_cast<double>(b)));
}

double softplus(double v) {
  return std::max(v, 0.0) + std::log1p(std::exp(-std::abs(v)));
}
double gelu(double v) {
  return v / 2 * (1 + std::erf(v / std::sqrt(2.0)));
}
double gelu_by_tanh(double v) {
  return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
}

Unary clip_of(const Node& node) {
  const Tensor* low = has_value(node, 1) ? &tensor_of(node, 1) : nullptr;
  const Tensor* high = has_value(node, 2) ? &tensor_of(node, 2) : nullptr;
  if (is_integer(node.output()->type.data_type)) {
    const int64_t least = low ? low->to_ints()[0] : std::numeric_limits<int64_t>::min();
    const int64_t most = high ? high->to_ints()[0] : std::numeric_limits<int64_t>::max();
    return {[=](int64_t v) { return std::min(std::max(v, least), most); }, nullptr};
  }
  const double least = low ? to_doubles(*low)[0] : -std::numeric_limits<double>::infinity();
  const double most = high ? to_doubles(*high)[0] : std::numeric_limits<double>::infinity();
  return {nullptr, [=](double v) { return std::min(std::max(v, least), most); }};
}

Unary unary_of(const Node& node) {
  using K = OpKind;
  const auto number = [&](const char* key) { return double{node.get_float(key)}; };
  switch (node.kind) {
    case K::kRelu:
      return {[](int64_t v) { return std::max<int64_t>(v, 0); }, [](double v) { return std::max(v, 0.0); }};
    case K::kNeg:
      return {negated, [](double v) { return -v; }};
    case K::kAbs:
      return {[](int64_t v) { return v < 0 ? negated(v) : v; }, [](double v) { return std::fabs(v); }};
    case K::kClip:
      return clip_of(node);
    case K::kLeakyRelu:
      return {nullptr, [alpha = number("alpha")](double v) { return v < 0 ? v * alpha : v; }};
    case K::kElu:
      return {nullptr, [alpha = number("alpha")](double v) { return v < 0 ? alpha * std::expm1(v) : v; }};
    case K::kSigmoid:
      return {nullptr, [](double v) { return 1 / (1 + std::exp(-v)); }};
    case K::kHardSigmoid:
      return {nullptr, [alpha = number("alpha"), beta = number("beta")](double v) {
                return std::clamp(alpha * v + beta, 0.0, 1.0);
              }};
    case K::kHardSwish:
      return {nullptr, [](double v) { return v * std::clamp(v / 6 + 0.5, 0.0, 1.0); }};
    case K::kGelu:
      return {nullptr, node.get_string("approximate", "none") == "tanh" ? gelu_by_tanh : gelu};
    case K::kMish:
      return {nullptr, [](double v) { return v * std::tanh(softplus(v)); }};
    case K::kSoftplus:
      return {nullptr, softplus};
    case K::kTanh:
      return {nullptr, [](double v) { return std::tanh(v); }};
    case K::kErf:
      return {nullptr, [](double v) { return std::erf(v); }};
    case K::kExp:
      return {nullptr, [](double v) { return std::exp(v); }};
    case K::kLog:
      return {nullptr, [](double v) { return std::log(v); }};
    case K::kSqrt:
      return {nullptr, [](double v) { return std::sqrt(v); }};
    case K::kFloor:
      return {nullptr, [](double v) { return std::floor(v); }};
    default:
      OCTET_CHECK(false, node_text(node), " has no function");
  }
}

}  // namespace

Binary binary_of(OpKind kind) {
  using I = int64_t;
  using U = uint64_t;
  using D = double;
  switch (kind) {
    case OpKind::kAdd:
      return {[](I a, I b) { return wrap(U(a) + U(b)); }, [](D a, D b) { return a + b; }};
    case OpKind::kSub:
      return {[](I a, I b) { return wrap(U(a) - U(b)); }, [](D a, D b) { return a - b; }};
    case OpKind::kMul:
      return {[](I a, I b) { return wrap(U(a) * U(b)); }, [](D a, D b) { return a * b; }};
    case OpKind::kDiv:
      return {quotient, [](D a, D b) { return a / b; }};
    case OpKind::kPow:
      return {power, [](D a, D b) { return std::pow(a, b); }};
    case OpKind::kMin:
      return {[](I a, I b) { return std::min(a, b); }, [](D a, D b) { return std::min(a, b); }};
    case OpKind::kMax:
      return {[](I a, I b) { return std::max(a, b); }, [](D a, D b) { return std::max(a, b); }};
    case OpKind::kPRelu:
      return {[](I a, I b) { return a < 0 ? wrap(U(a) * U(b)) : a; }, [](D a, D b) { return a < 0 ? a * b : a; }};
    default:
      OCTET_CHECK(false, op_info(kind).name, " has no function");
  }
}

std::optional<Tensor> map(const Tensor& x, const Unary& f, MemoryBudget& budget) {
  budget.charge(8 * x.size());
  if (is_integer(x.data_type()) && f.ints) {
    std::vector<int64_t> values = x.to_ints();
    for (int64_t& v : values) v = f.ints(v);
    return packed(x.data_type(), x.shape(), values);
  }
  if (!is_float(x.data_type()) || !f.floats) return std::nullopt;
  std::vector<double> values = to_doubles(x);
  for (double& v : values) v = f.floats(v);
  return packed(x.data_type(), x.shape(), values);
}

std::optional<Tensor> zip(const Tensor& a, const Tensor& b, const Binary& f, MemoryBudget& budget,
                          std::optional<DataType> result) {
  const bool ints = is_integer(a.data_type()) && is_integer(b.data_type()) && f.ints;
  const bool floats = is_float(a.data_type()) && is_float(b.data_type()) && f.floats;
  if (!ints && !floats) return std::nullopt;
  const Shape shape = broadcast(a.shape(), b.shape());
  const Tensor left = expand(a, shape, budget), right = expand(b, shape, budget);
  budget.charge(8 * left.size());
  const DataType type = result.value_or(a.data_type());
  if (ints) {
    std::vector<int64_t> x = left.to_ints();
    const std::vector<int64_t> y = right.to_ints();
    for (size_t i = 0; i < x.size(); ++i) x[i] = f.ints(x[i], y[i]);
    return packed(type, shape, x);
  }
  std::vector<double> x = to_doubles(left);
  const std::vector<double> y = to_doubles(right);
  for (size_t i = 0; i < x.size(); ++i) x[i] = f.floats(x[i], y[i]);
  return packed(type, shape, x);
}

Tensors evaluate_unary(const Node& node, MemoryBudget& budget) {
  const auto out = map(tensor_of(node, 0), unary_of(node), budget);
  return out ? Tensors({*out}) : std::nullopt;
}

Tensors evaluate_binary(const Node& node, MemoryBudget& budget) {
  std::optional<Tensor> out = tensor_of(node, 0);
  for (size_t i = 1; i < node.inputs.size() && out; ++i)  // Min and Max take any number
    out = zip(*out, tensor_of(node, i), binary_of(node.kind), budget);
  return out ? Tensors({*out}) : std::nullopt;
}

Tensors evaluate_cast(const Node& node, MemoryBudget& budget) {
  const Tensor& x = tensor_of(node, 0);
  const DataType to = node.output()->type.data_type;
  if (to == x.data_type()) return {{x}};
  budget.charge(8 * x.size());
  const auto out =
      is_integer(x.data_type()) ? packed(to, x.shape(), x.to_ints()) : packed(to, x.shape(), to_doubles(x));
  return out ? Tensors({*out}) : std::nullopt;
}

Tensors evaluate_batch_norm(const Node& node, MemoryBudget& budget) {
  if (node.outputs.size() > 1 || !is_float(node.output()->type.data_type)) return std::nullopt;
  const Shape& shape = output_shape(node);
  budget.charge(8 * element_count(shape));
  std::vector<double> x = doubles_of(node, 0);
  const std::vector<double> scale = doubles_of(node, 1), bias = doubles_of(node, 2), mean = doubles_of(node, 3),
                            variance = doubles_of(node, 4);
  const auto inner = static_cast<size_t>(element_count({shape.begin() + 2, shape.end()}));
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i / inner % scale.size();
    x[i] = (x[i] - mean[c]) * (1 / std::sqrt(variance[c] + node.get_float("epsilon"))) * scale[c] + bias[c];
  }
  return only_output(node, x);
}

}  // namespace octet::ir
