// UnaryFunction for any vector width (see float_functions.h).
#pragma once
#include "engine/kernels/float_functions.h"
#include "engine/kernels/float_ops.h"

namespace octet::kernels {
namespace {

// False, and nothing done, where the operation has no vector form. What takes no polynomial has the bits of
// apply_unary.
template <typename F>
bool unary(const UnaryArgs& a, Range elements) {
  using V = typename F::V;
  const auto each = [&](auto&& f) {
    int64_t i = elements.begin;
    for (; i + F::kLanes <= elements.end; i += F::kLanes) F::store(a.out + i, f(F::load(a.in + i)));
    const int64_t rest = elements.end - i;
    if (rest > 0) F::store_first(a.out + i, f(F::load_first(a.in + i, rest)), rest);
    return true;
  };
  const V zero = F::broadcast(0), one = F::broadcast(1), alpha = F::broadcast(a.alpha), beta = F::broadcast(a.beta);
  switch (a.op) {
    case UnaryOp::kIdentity:
      return each([](V x) { return x; });
    case UnaryOp::kRelu:
      return each([=](V x) { return F::max(zero, x); });
    case UnaryOp::kClip:
      return each([=](V x) { return F::min(beta, F::max(alpha, x)); });
    case UnaryOp::kLeakyRelu:
      return each([=](V x) { return F::select_ge(x, zero, x, alpha * x); });
    case UnaryOp::kElu:
      return each([=](V x) { return F::select_ge(x, zero, x, alpha * expm1_negative<F>(F::min(zero, x))); });
    case UnaryOp::kSigmoid:
      return each([](V x) { return sigmoid<F>(x); });
    case UnaryOp::kSilu:
      return each([](V x) { return silu<F>(x); });
    case UnaryOp::kHardSigmoid:
      return each([=](V x) { return F::min(one, F::max(zero, alpha * x + beta)); });
    case UnaryOp::kHardSwish:
      return each([=](V x) { return x * F::min(one, F::max(zero, x / 6.0f + 0.5f)); });
    case UnaryOp::kTanh:
      return each([](V x) { return tanh<F>(x); });
    case UnaryOp::kSoftplus:
      return each([](V x) { return softplus<F>(x); });
    case UnaryOp::kExp:
      return each([](V x) { return exp<F>(x); });
    case UnaryOp::kNeg:
      return each([](V x) { return -x; });
    case UnaryOp::kAbs:
      return each([=](V x) { return F::with_sign(x, one); });
    case UnaryOp::kErf:
      return each([](V x) { return erf<F>(x); });
    case UnaryOp::kGelu:
      return each([=](V x) { return x * 0.5f * (one + erf<F>(x * 0.70710678118654752f)); });
    case UnaryOp::kReciprocal:
      return each([=](V x) { return one / x; });
    case UnaryOp::kLog:
    case UnaryOp::kSqrt:
    case UnaryOp::kFloor:
      break;
  }
  return false;
}

}  // namespace
}  // namespace octet::kernels
