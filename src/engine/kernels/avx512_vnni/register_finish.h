// finish.h in registers, without a way through memory: from int32 sums to codes, for numbers that are bounded
// (sums_are_bounded). By hand, because the compiler would keep constants in registers and spill the sums of products
// before or beside it.
#pragma once
#include "engine/kernels/avx512_vnni/finish.h"

namespace octet::kernels {
namespace {

// Constants, and the multipliers of the tile's channels.
struct alignas(64) RegisterFinish {
  float multiplier[4 * 16];
  float offset[4 * 16];  // -2^23 * multiplier, for relu_shortcut()
  SumConstants constants;
  Z two23, places, order;              // see bytes_on_two23(), pack_order()
  __m512 residual_high, residual_low;  // Epilogue::residual_tables
};

constexpr int kConstantsAt = offsetof(RegisterFinish, constants);

OCTET_INLINE RegisterFinish make_register_finish(const Epilogue& e) {
  RegisterFinish f;
  f.constants = make_constants(e);
  f.two23 = _mm512_set1_epi32(kBitsOfTwo23);
  f.places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  f.order = pack_order();
  if (e.residual_tables) {
    f.residual_high = _mm512_loadu_ps(e.residual_tables->high);
    f.residual_low = _mm512_loadu_ps(e.residual_tables->low);
  }
  return f;
}

// 16 sums times their multipliers, the Nth of the tile.
template <int N>
OCTET_INLINE void scale_sums(Z& v, const RegisterFinish& f) {
  asm volatile(
      "vcvtdq2ps %[v], %[v]\n\t"
      "vmulps %c[at](%[f]), %[v], %[v]"
      : [v] "+v"(v)
      : [f] "r"(&f), [at] "i"(offsetof(RegisterFinish, multiplier) + N * 64), "m"(f));
}
// The same of sums that start with the bits of 2^23 (relu_shortcut()).
template <int N>
OCTET_INLINE void scale_relu_sums(Z& v, const RegisterFinish& f) {
  Z multiplier;
  asm volatile(
      "vmovaps %c[at](%[f]), %[multiplier]\n\t"
      "vfmadd213ps %c[offset](%[f]), %[multiplier], %[v]"
      : [v] "+v"(v), [multiplier] "=&v"(multiplier)
      : [f] "r"(&f), [at] "i"(offsetof(RegisterFinish, multiplier) + N * 64),
        [offset] "i"(offsetof(RegisterFinish, offset) + N * 64), "m"(f));
}
OCTET_INLINE void round(Z& v) {
  asm volatile("vcvtps2dq %[v], %[v]" : [v] "+v"(v));
}

// Of the first of two roundings.
struct MiddleLimits {
  Z low, high;
};
OCTET_INLINE MiddleLimits load_limits(const RegisterFinish& f) {
  MiddleLimits limits;
  asm volatile("vmovdqa64 %1, %0" : "=v"(limits.low) : "m"(f.constants.mid_low));
  asm volatile("vmovdqa64 %1, %0" : "=v"(limits.high) : "m"(f.constants.mid_high));
  return limits;
}

// The first of two roundings, still as floats.
OCTET_INLINE void round_middle(Z& v, const MiddleLimits& limits) {
  asm volatile(
      "vrndscaleps $8, %[v], %[v]\n\t"
      "vmaxps %[low], %[v], %[v]\n\t"
      "vminps %[high], %[v], %[v]"
      : [v] "+v"(v)
      : [low] "v"(limits.low), [high] "v"(limits.high));
}

// Ways to fl((r - zero_point) * multiplier) of 16 codes r.
enum class Residual {
  kTables,   // Epilogue::residual_tables: nearly that, and as good in a fused sum
  kOnTwo23,  // see residual_product()
  kOnTwo23NoZeroPoint
};

template <Residual R>
OCTET_INLINE Z scaled_residual(const uint8_t* codes, const RegisterFinish& f) {
  const SumConstants& c = f.constants;
  const auto& bytes = *reinterpret_cast<const uint8_t(*)[16]>(codes);
  Z r, t;
  if constexpr (R == Residual::kTables) {
    // vpermps looks at the lowest four bits.
    asm volatile(
        "vpmovzxbd %[codes], %[r]\n\t"
        "vpsrld $4, %[r], %[t]\n\t"
        "vpermps %[low], %[r], %[r]\n\t"
        "vpermps %[high], %[t], %[t]\n\t"
        "vaddps %[t], %[r], %[r]"
        : [r] "=&v"(r), [t] "=&v"(t)
        : [codes] "m"(bytes), [low] "m"(f.residual_low), [high] "m"(f.residual_high)
        : "memory");
    return r;
  }
  asm volatile(
      "vbroadcasti32x4 %[codes], %[t]\n\t"
      "vmovdqa64 %[two23], %[r]\n\t"
      "vpshufb %[places], %[t], %[r]%{%[low_bytes]%}"
      : [r] "=&v"(r), [t] "=&v"(t)
      :
      [codes] "m"(bytes), [two23] "m"(f.two23), [places] "m"(f.places), [low_bytes] "Yk"(__mmask64{0x1111111111111111})
      : "memory");
  if constexpr (R == Residual::kOnTwo23NoZeroPoint) {
    asm volatile(
        "vmovaps %[correction], %[t]\n\t"
        "vfmadd132ps %[multiplier], %[t], %[r]"
        : [r] "+v"(r), [t] "=&v"(t)
        : [correction] "m"(c.residual_correction), [multiplier] "m"(c.residual_multiplier));
  } else {
    asm volatile(
        "vsubps %[start], %[r], %[r]\n\t"
        "vmulps %[multiplier], %[r], %[r]"
        : [r] "+v"(r)
        : [start] "m"(c.residual_start), [multiplier] "m"(c.residual_multiplier));
  }
  return r;
}

// kFused: see Epilogue::sum_fuses.
template <bool kFused>
OCTET_INLINE void add_residual(Z& v, const Z& residual, const RegisterFinish& f) {
  if constexpr (kFused) {
    asm volatile(
        "vfmadd132ps %c[at](%[f]), %[residual], %[v]"
        : [v] "+v"(v)
        : [residual] "v"(residual), [f] "r"(&f), [at] "i"(kConstantsAt + offsetof(SumConstants, mid_multiplier)),
          "m"(f));
  } else {
    asm volatile(
        "vmulps %[multiplier], %[v], %[v]\n\t"
        "vaddps %[residual], %[v], %[v]"
        : [v] "+v"(v)
        : [residual] "v"(residual), [multiplier] "m"(f.constants.mid_multiplier));
  }
}

// Two vectors of int32 to words in a.
OCTET_INLINE void pack_words(Z& a, const Z& b) {
  asm volatile("vpackssdw %[b], %[a], %[a]" : [a] "+v"(a) : [b] "v"(b));
}

// The limits of codes.
enum class Limits {
  kPlain,  // zero point 0, codes 0..255: what saturation gives
  kUpper,  // zero point 0, codes from 0 on
  kBoth
};

// 64 codes in a from the words of a and c, which is lost.
template <Limits L>
OCTET_INLINE void pack_codes(Z& a, Z& c, const RegisterFinish& f) {
  if constexpr (L == Limits::kBoth)
    asm volatile(
        "vpaddsw %[zero_point], %[a], %[a]\n\t"
        "vpaddsw %[zero_point], %[c], %[c]"
        : [a] "+v"(a), [c] "+v"(c)
        : [zero_point] "m"(f.constants.zero_point16));
  asm volatile(
      "vpackuswb %[c], %[a], %[a]\n\t"
      "vmovdqa64 %[order], %[c]\n\t"
      "vpermd %[a], %[c], %[a]"
      : [a] "+v"(a), [c] "+v"(c)
      : [order] "m"(f.order));
  if constexpr (L == Limits::kUpper)
    asm volatile("vpminub %[high], %[a], %[a]" : [a] "+v"(a) : [high] "m"(f.constants.high8));
  if constexpr (L == Limits::kBoth)
    asm volatile(
        "vpmaxub %[low], %[a], %[a]\n\t"
        "vpminub %[high], %[a], %[a]"
        : [a] "+v"(a)
        : [low] "m"(f.constants.low8), [high] "m"(f.constants.high8));
}

}  // namespace
}  // namespace octet::kernels
