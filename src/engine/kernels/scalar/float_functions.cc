// Element-wise float functions, Softmax and layer normalization, one element at a time; the compiler makes vectors of
// some.
#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/kernels/float_limits.h"
#include "engine/kernels/float_ops.h"
#include "engine/kernels/layer_norm_kernel.h"
#include "engine/kernels/scalar/scalar_kernels.h"
#include "engine/kernels/softmax_kernel.h"
#include "engine/kernels/unary_kernel.h"

namespace octet::kernels {

float apply_unary(UnaryOp op, float x, float alpha, float beta) {
  switch (op) {
    case UnaryOp::kIdentity:
      return x;
    case UnaryOp::kRelu:
      return at_least(0.0f, x);
    case UnaryOp::kClip:
      return limited(x, alpha, beta);
    case UnaryOp::kLeakyRelu:
      return x >= 0 ? x : alpha * x;
    case UnaryOp::kElu:
      return x >= 0 ? x : alpha * std::expm1(x);
    case UnaryOp::kSigmoid:
      return 1.0f / (1.0f + std::exp(-x));
    case UnaryOp::kSilu:
      return x / (1.0f + std::exp(-x));
    case UnaryOp::kHardSigmoid:
      return std::min(std::max(alpha * x + beta, 0.0f), 1.0f);
    case UnaryOp::kHardSwish:
      return x * std::min(std::max(x / 6.0f + 0.5f, 0.0f), 1.0f);
    case UnaryOp::kTanh:
      return std::tanh(x);
    case UnaryOp::kSoftplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    case UnaryOp::kExp:
      return std::exp(x);
    case UnaryOp::kLog:
      return std::log(x);
    case UnaryOp::kSqrt:
      return std::sqrt(x);
    case UnaryOp::kNeg:
      return -x;
    case UnaryOp::kAbs:
      return std::fabs(x);
    case UnaryOp::kErf:
      return std::erf(x);
    case UnaryOp::kGelu:
      return 0.5f * x * (1.0f + std::erf(x * 0.70710678118654752f));
    case UnaryOp::kFloor:
      return std::floor(x);
    case UnaryOp::kReciprocal:
      return 1.0f / x;
  }
  return x;
}

namespace {

struct F1 {
  typedef float V;
  static constexpr int64_t kLanes = 1;
  static OCTET_INLINE V broadcast(float x) { return x; }
  static OCTET_INLINE V load(const float* p) { return *p; }
  static OCTET_INLINE void store(float* p, V v) { *p = v; }
  static OCTET_INLINE V load_first(const float* p, int64_t) { return *p; }
  static OCTET_INLINE void store_first(float* p, V v, int64_t) { *p = v; }
  static OCTET_INLINE V min(V a, V b) { return a < b ? a : b; }
  static OCTET_INLINE V max(V a, V b) { return a > b ? a : b; }
  static OCTET_INLINE V select_ge(V x, V bound, V a, V b) { return x >= bound ? a : b; }
  static OCTET_INLINE V with_sign(V v, V sign) { return std::copysign(v, sign); }
  static OCTET_INLINE V exponent(V t) { return std::bit_cast<float>(std::bit_cast<uint32_t>(t) << 23); }
};

void softmax_scalar(const SoftmaxArgs& a, Range outer) {
  softmax<F1>(a, outer);
}
void layer_norm_scalar(const LayerNormArgs& a, Range lines) {
  layer_norm<F1>(a, lines);
}

}  // namespace

void unary_scalar(const UnaryArgs& a, Range elements) {
  if (unary<F1>(a, elements)) return;
  for (int64_t i = elements.begin; i < elements.end; ++i) a.out[i] = apply_unary(a.op, a.in[i], a.alpha, a.beta);
}

void add_scalar_float_functions(KernelTable& table) {
  table.unary = {unary_scalar};
  table.softmax = {softmax_scalar};
  table.layer_norm = {layer_norm_scalar};
}

}  // namespace octet::kernels
