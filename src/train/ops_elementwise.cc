// Activations and element-wise arithmetic. Cheap ones stay in the type of their input; those that need range or
// precision (exponentials, roots, softmax) run and stay in float32.
#include <limits>

#include "ir/data_type_codes.h"
#include "train/constants.h"
#include "train/ops_common.h"
#include "train/precision.h"

namespace octet::train {
namespace {

using ir::OpKind;

template <typename F>
StepFunction unary(const Wiring& w, F f) {
  return [in = w.in.at(0), out = w.out.at(0), f](Run& run) { run.set(out, f(run.plain(in))); };
}

template <typename F>
StepFunction precise_unary(const Wiring& w, F f) {
  return [in = w.in.at(0), out = w.out.at(0), f](Run& run) { run.set(out, f(run.precise(in))); };
}

// Float32 constants must not lift a low stream to float32: the sum is computed in float32 and rounded once.
template <typename F>
StepFunction binary(const Wiring& w, F f) {
  return [a = w.in.at(0), b = w.in.at(1), out = w.out.at(0), f](Run& run) {
    const at::Tensor x = run.plain(a), y = run.plain(b);
    const at::Tensor z = f(x, y);
    const bool low = is_low(x.scalar_type()) || is_low(y.scalar_type());
    run.set(out, low ? run.flow(z) : z);
  };
}

StepFunction relu(const Wiring& w) {
  return [in = w.in.at(0), out = w.out.at(0), overwrite = w.may_overwrite](Run& run) {
    Slot s = run.slots[in];  // codes stay codes: scales are positive
    if (!s.is_codes()) s = Slot{.value = run.plain(in)};
    s.value = overwrite && run.may_overwrite ? at::relu_(s.value) : at::relu(s.value);
    run.slots[out] = std::move(s);
  };
}

StepFunction clip(const ir::Node& node, const Wiring& w) {
  const bool has_low = node.has_input(1), has_high = node.has_input(2);
  return [=](Run& run) {
    const at::Tensor x = run.plain(w.in[0]);
    std::optional<at::Tensor> low, high;
    if (has_low) low = run.plain(w.in[1]).to(x.options());
    if (has_high) high = run.plain(w.in[2]).to(x.options());
    run.set(w.out[0], has_low || has_high ? at::clamp(x, low, high) : x);
  };
}

template <typename F>
StepFunction variadic(const Wiring& w, F f) {
  return [w, f](Run& run) {
    at::Tensor result = run.plain(w.in[0]);
    for (size_t i = 1; i < w.in.size(); ++i) {
      const at::Tensor next = run.plain(w.in[i]);
      result = f(result, next.to(result.scalar_type()));
    }
    run.set(w.out[0], result);
  };
}

at::Tensor divide(const at::Tensor& x, const at::Tensor& y) {
  return at::isFloatingType(at::promoteTypes(x.scalar_type(), y.scalar_type())) ? at::div(x, y)
                                                                                : at::div(x, y, "trunc");
}

StepFunction cast(const ir::Node& node, const Wiring& w) {
  const at::ScalarType to = scalar_type_of(ir::data_type_from_onnx(node.get_int("to")));
  return [in = w.in[0], out = w.out[0], to](Run& run) {
    // Floating types are one type to the executor: which one flows is the precision's matter, not the graph's.
    run.set(out, at::isFloatingType(to) ? run.precise(in).to(run.master) : run.plain(in).to(to));
  };
}

}  // namespace

StepFunction compile_elementwise(const ir::Node& node, const Wiring& w) {
  const double alpha = node.info().find_attribute("alpha") ? node.get_float("alpha") : 0;
  const double beta = node.info().find_attribute("beta") ? node.get_float("beta") : 0;
  const int64_t axis = node.info().find_attribute("axis") ? node.get_int("axis") : 0;
  using T = const at::Tensor&;
  switch (node.kind) {
    case OpKind::kRelu:
      return relu(w);
    case OpKind::kClip:
      return clip(node, w);
    case OpKind::kLeakyRelu:
      return unary(w, [=](T x) { return at::leaky_relu(x, alpha); });
    case OpKind::kPRelu:
      return binary(w, [](T x, T slope) { return at::where(x >= 0, x, x * slope); });
    case OpKind::kElu:
      return unary(w, [=](T x) { return at::elu(x, alpha); });
    case OpKind::kSigmoid:
      return precise_unary(w, [](T x) { return at::sigmoid(x); });
    case OpKind::kHardSigmoid:
      return unary(w, [=](T x) { return at::clamp(x * alpha + beta, 0, 1); });
    case OpKind::kHardSwish:
      return unary(w, [](T x) { return at::hardswish(x); });
    case OpKind::kTanh:
      return unary(w, [](T x) { return at::tanh(x); });
    case OpKind::kSoftplus:
      return precise_unary(w, [](T x) { return at::softplus(x); });
    case OpKind::kSoftmax:
      return precise_unary(w, [=](T x) { return at::softmax(x, axis); });
    case OpKind::kLogSoftmax:
      return precise_unary(w, [=](T x) { return at::log_softmax(x, axis); });
    case OpKind::kExp:
      return precise_unary(w, [](T x) { return at::exp(x); });
    case OpKind::kLog:
      return precise_unary(w, [](T x) { return at::log(x); });
    case OpKind::kSqrt:
      return precise_unary(w, [](T x) { return at::sqrt(x); });
    case OpKind::kNeg:
      return unary(w, [](T x) { return at::neg(x); });
    case OpKind::kAbs:
      return unary(w, [](T x) { return at::abs(x); });
    case OpKind::kErf:
      return precise_unary(w, [](T x) { return at::erf(x); });
    case OpKind::kGelu:
      return precise_unary(w, [](T x) { return at::gelu(x); });
    case OpKind::kMish:
      return precise_unary(w, [](T x) { return at::mish(x); });
    case OpKind::kFloor:
      return unary(w, [](T x) { return at::floor(x); });
    case OpKind::kAdd:
      return binary(w, [](T x, T y) { return at::add(x, y); });
    case OpKind::kSub:
      return binary(w, [](T x, T y) { return at::sub(x, y); });
    case OpKind::kMul:
      return binary(w, [](T x, T y) { return at::mul(x, y); });
    case OpKind::kDiv:
      return binary(w, divide);
    case OpKind::kPow:
      return binary(w, [](T x, T y) { return at::pow(x, y); });
    case OpKind::kMin:
      return variadic(w, [](T x, T y) { return at::minimum(x, y); });
    case OpKind::kMax:
      return variadic(w, [](T x, T y) { return at::maximum(x, y); });
    case OpKind::kCast:
      return cast(node, w);
    default:
      break;
  }
  OCTET_CHECK(false, node_text(node), " is not element-wise");
}

}  // namespace octet::train
