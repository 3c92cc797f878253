// exp, sigmoid, tanh and their kin on vectors, from one formula for every instruction set. No step of it is fused
// (FMA), and nothing depends on the number of lanes, so that all instruction sets give the same bits, which the C
// library does not promise. Included by the files of an instruction set, hence the anonymous namespace: see
// kernels/CMakeLists.txt.
//
// F supplies the vectors; V has the operators + - * / of the compiler's vectors, also with a float:
//   V; kLanes; broadcast(float); load(p); store(p, v); load_first(p, n); store_first(p, v, n);
//   min(a, b): a < b ? a : b;  max(a, b): a > b ? a : b;  both so give b where one is NaN
//   select_ge(x, bound, a, b): x >= bound ? a : b
//   with_sign(v, sign): copysign;  exponent(t): the bits of t, shifted left by 23
//
// Errors against the exact value, in units of the last place (ulp) of the result, also where that is denormal, found by
// trying all floats: exp 1.0, sigmoid 2.5, silu 3.4, expm1 1.0, tanh 2.5, softplus 2.9, erf 1.4 (kernels_test,
// FloatFunctions, tries a sample). NaN gives NaN.
#pragma once
#include <cstdint>

#define OCTET_INLINE __attribute__((always_inline)) inline

namespace octet::kernels {
namespace {

// A sum of this size has no room for a fraction: adding it rounds to the nearest integer, which its lowest bits then
// are.
constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23

// y = n ln 2 + r with |r| <= ln 2 / 2 and a little.
template <typename F>
struct ExpParts {
  typename F::V n;
  typename F::V power;     // 2^(n + shift)
  typename F::V fraction;  // e^r - 1, of a small relative error
};

// -126 <= n + shift <= 127. Reduction and polynomial are those of Cephes' expf (S. L. Moshier, netlib.org/cephes,
// single/expf.c): the upper part of ln 2 has 9 bits, so that its product with n is exact.
template <typename F, int kShift = 0>
OCTET_INLINE ExpParts<F> exp_parts(typename F::V y) {
  using V = typename F::V;
  constexpr float kBias = kRounder + 127 + kShift;
  const V t = y * 1.44269504088896341f + kBias;  // log2(e)
  const V n = t - kBias;
  const V r = (y - n * 0.693359375f) - n * -2.12194440e-4f;
  V q = r * 1.9875691500e-4f + 1.3981999507e-3f;
  q = q * r + 8.3334519073e-3f;
  q = q * r + 4.1665795894e-2f;
  q = q * r + 1.6666665459e-1f;
  q = q * r + 5.0000001201e-1f;
  return {n, F::exponent(t), q * (r * r) + r};
}

template <typename F>
OCTET_INLINE typename F::V exp(typename F::V x) {
  using V = typename F::V;
  // Beyond these limits lie zero and infinity.
  const ExpParts<F> e = exp_parts<F>(F::min(F::broadcast(89), F::max(F::broadcast(-104), x)));
  // 2^n in two factors: n may be below -126 or above 127, and a denormal result is rounded once.
  constexpr float kBias = kRounder + 127;
  const V half = e.n * 0.5f + kBias, rest = (e.n - (half - kBias)) + kBias;
  return (e.fraction + 1) * F::exponent(half) * F::exponent(rest);
}

// 2^64 e^y for y <= 0, zero where e^y is zero: the factor keeps its precision where e^y is denormal.
constexpr float kDown64 = 0x1p-64f;
template <typename F>
OCTET_INLINE typename F::V exp_up64(typename F::V y) {
  const typename F::V limit = F::broadcast(-128);
  const ExpParts<F> e = exp_parts<F, 64>(F::max(limit, y));
  return F::select_ge(limit, y, F::broadcast(0), (e.fraction + 1) * e.power);
}

// e^y for y <= 0.
template <typename F>
OCTET_INLINE typename F::V exp_negative(typename F::V y) {
  return exp_up64<F>(y) * kDown64;
}

// e^y - 1 for y <= 0.
template <typename F>
OCTET_INLINE typename F::V expm1_negative(typename F::V y) {
  const ExpParts<F> e = exp_parts<F>(F::max(F::broadcast(-64), y));
  return e.power * e.fraction + (e.power - 1);
}

template <typename F>
OCTET_INLINE typename F::V minus_abs(typename F::V x) {
  return F::with_sign(x, F::broadcast(-1));
}

template <typename F>
OCTET_INLINE typename F::V sigmoid(typename F::V x) {
  const typename F::V e = exp_negative<F>(minus_abs<F>(x));
  return F::select_ge(x, F::broadcast(0), F::broadcast(1), e) / (e + 1);
}

// x * sigmoid(x); NaN of minus infinity, as that product.
template <typename F>
OCTET_INLINE typename F::V silu(typename F::V x) {
  const typename F::V e = exp_up64<F>(minus_abs<F>(x));
  return F::select_ge(x, F::broadcast(0), x, x * e * kDown64) / (e * kDown64 + 1);
}

template <typename F>
OCTET_INLINE typename F::V tanh(typename F::V x) {
  const typename F::V e = expm1_negative<F>(minus_abs<F>(x + x));
  return F::with_sign(e / (e + 2), x);
}

// max(x, 0) + log(1 + e), e = e^-|x|. log(1 + e) = 2 artanh(w / 2) with w = 2 e / (2 + e) <= 2 / 3; the polynomial is a
// minimax fit (Remez) of (2 artanh(w / 2) / w - 1) / w^2 in w^2, of a relative error of 5e-9.
template <typename F>
OCTET_INLINE typename F::V softplus(typename F::V x) {
  using V = typename F::V;
  const V e = exp_negative<F>(minus_abs<F>(x));
  const V w = (e + e) / (e + 2), z = w * w;
  V p = z * 5.473530036e-4f + 2.187432721e-3f;
  p = p * z + 1.250678115e-2f;
  p = p * z + 8.333301544e-2f;
  return F::max(F::broadcast(0), x) + (p * z * w + w);
}

// |x| < 1: x + x P(x^2); beyond: 1 - e^(-t Q(t)), t = |x|. Minimax fits (Remez) of errors below 3e-9 in erf. From 4 on
// erf is 1.
template <typename F>
OCTET_INLINE typename F::V erf(typename F::V x) {
  using V = typename F::V;
  const V s = x * x;
  V p = s * 7.853860734e-5f + -8.010193706e-4f;
  p = p * s + 5.188327748e-3f;
  p = p * s + -2.685381286e-2f;
  p = p * s + 1.128358543e-1f;
  p = p * s + -3.761262596e-1f;
  p = p * s + 1.283791661e-1f;
  const V t = F::min(F::broadcast(4), F::with_sign(x, F::broadcast(1)));
  V q = t * -2.106424072e-4f + 3.186940216e-3f;
  q = q * t + -2.279844321e-2f;
  q = q * t + 1.051161066e-1f;
  q = q * t + 6.358314753e-1f;
  q = q * t + 1.128480077f;
  const V far = F::broadcast(1) - exp_negative<F>(q * t * -1.0f);
  return F::select_ge(t, F::broadcast(1), F::with_sign(far, x), p * x + x);
}

}  // namespace
}  // namespace octet::kernels
