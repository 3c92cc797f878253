// The transforms of F(4x4,3x3) over vectors of integers of any width: https://arxiv.org/abs/1509.09308, scaled to
// integers as winograd.h says. In an anonymous namespace: see kernels/CMakeLists.txt.
#pragma once
#include <cstdint>
#include <cstring>

namespace octet::kernels {
namespace {

#define OCTET_FLAT __attribute__((always_inline)) inline

// Vector types of the compiler, of 32 and of 64 bytes. Unsigned, because signed sums must not wrap.
struct Vectors32 {
  typedef uint16_t Words __attribute__((vector_size(32)));
  typedef int16_t SignedWords __attribute__((vector_size(32)));
  typedef uint32_t Sums __attribute__((vector_size(32)));
  typedef int32_t Accumulators __attribute__((vector_size(32)));
  // The elements 0, 2, 4 ..., then 1, 3, 5 ... (a template, so that it exists only where these vectors do)
  template <typename S>
  static OCTET_FLAT S even_then_odd(S s) {
    return __builtin_shufflevector(s, s, 0, 2, 4, 6, 1, 3, 5, 7);
  }
};
struct Vectors64 {
  typedef uint16_t Words __attribute__((vector_size(64)));
  typedef int16_t SignedWords __attribute__((vector_size(64)));
  typedef uint32_t Sums __attribute__((vector_size(64)));
  typedef int32_t Accumulators __attribute__((vector_size(64)));
  template <typename S>
  static OCTET_FLAT S even_then_odd(S s) {
    return __builtin_shufflevector(s, s, 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  }
};

// v = BT d, along one axis.
template <typename Words>
OCTET_FLAT void transform_input(const Words (&d)[6], Words (&v)[6]) {
  const Words f1 = d[1] << 2, f2 = d[2] << 2;
  const Words a = d[4] - f2, b = d[3] - f1;
  const Words e = d[4] - d[2], t = (d[3] - d[1]) << 1;
  v[0] = (d[0] << 2) + (a - d[2]);
  v[1] = a + b;
  v[2] = a - b;
  v[3] = e + t;
  v[4] = e - t;
  v[5] = d[5] - (b + (d[3] << 2));
}

// u = G g, along one axis.
template <typename Words>
OCTET_FLAT void transform_weights(const Words& a, const Words& b, const Words& c, Words (&u)[6]) {
  const Words outer = a + c, far = a + (c << 2), twice = b << 1;
  u[0] = (a << 2) + (a << 1);
  u[1] = Words{} - ((outer + b) << 2);
  u[2] = (b - outer) << 2;
  u[3] = far + twice;
  u[4] = far - twice;
  u[5] = (c << 2) + (c << 1);
}

// y = AT m, along one axis, modulo 2^32.
template <typename Sums>
OCTET_FLAT void transform_output(const Sums (&m)[6], Sums (&y)[4]) {
  const Sums s1 = m[1] + m[2], d1 = m[1] - m[2], s2 = m[3] + m[4], d2 = m[3] - m[4];
  const Sums twice = d2 + d2;
  y[0] = m[0] + s1 + s2;
  y[1] = d1 + twice;
  y[2] = s1 + (s2 << 2);
  y[3] = d1 + ((twice + m[5]) << 2);
}

template <typename Vector>
OCTET_FLAT Vector load_vector(const void* p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <typename Vector>
OCTET_FLAT void store_vector(void* p, Vector v) {
  std::memcpy(p, &v, sizeof v);
}

}  // namespace
}  // namespace octet::kernels
