// From the sums of a block of tiles to the outputs of a layer, a few pixels at a time, so that the vector unit finishes
// one block while the tile unit multiplies the next. The rules are those of Epilogue in int8_conv.h.
#pragma once
#include <type_traits>

#include "engine/kernels/avx512_vnni/finish.h"

namespace octet::kernels {
namespace {

// Where the results of the pixels of a block go: byte offsets, one entry for each pixel that is an output (a tile may
// also compute positions between two rows, or pixels of the tile before it; those have no entry).
struct PixelList {
  const int32_t* sums = nullptr;      // from FinishJob::sums
  const int32_t* out = nullptr;       // from FinishJob::out
  const int32_t* residual = nullptr;  // from FinishJob::residual
};

// The finishes that short blocks also do in line, between their multiplications: without a residual, see Values.
enum class InLine { kNot, kRelu, kPlain, kBounded };

// A block whose sums lie in a buffer of tiles: 16 channels of a pixel are 64 bytes, the next 16 channels follow
// kTileBytes later.
struct FinishJob {
  void (*finish)(FinishJob& job, int64_t pixels) = nullptr;
  InLine in_line = InLine::kNot;  // what else does the same as `finish`
  const std::byte* sums = nullptr;
  PixelList pixels;
  int64_t count = 0, next = 0;  // pixels, and how many of them are done
  std::byte* out = nullptr;     // at the block's first channel
  const std::byte* residual = nullptr;
  int64_t channel = 0;
  const int32_t* acc_init = nullptr;  // of all channels
  const Epilogue* epilogue = nullptr;
  const Constants* constants = nullptr;
};

// What is known of a layer's numbers, and saves instructions.
enum class Values {
  kAny,
  kTable,       // as kAny, with a table in registers behind the codes, or a function of steps
  kLines,       // as kBounded, with a function of steps on lines behind the sums
  kShortLines,  // besides, lines_shortcut() holds
  kBounded,     // no scaled sum leaves int32, so the upper limit can wait for the codes
  kPlain,       // besides, all zero points are 0 and the limits are 0 and 255: saturation is all there is
  kRelu         // besides, relu_shortcut() holds
};

constexpr bool has_lines(Values v) {
  return v == Values::kLines || v == Values::kShortLines;
}

// What a finish keeps of the constants: copies in registers, as for all that the compiler knows the codes that it
// stores could change what it refers to. But not of all constants, which would stay a copy of a kilobyte in memory,
// made for every few pixels.
template <Values V>
using KeptConstants = std::conditional_t<V <= Values::kTable, const Constants&, const SumConstants>;

template <Values V>
OCTET_INLINE Z pack_codes(Z a, Z b, Z c, Z d, KeptConstants<V>& k, const Lines& lines) {
  if constexpr (V == Values::kTable)
    return k.function ? pack_function(a, b, c, d, k) : look_up64(pack(a, b, c, d, k), k.table);
  if constexpr (has_lines(V)) return pack_lines(a, b, c, d, lines);
  if constexpr (V < Values::kPlain) return pack(a, b, c, d, k);
  const Z codes =
      _mm512_permutexvar_epi32(pack_order(), _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d)));
  return V == Values::kRelu ? _mm512_min_epu8(codes, k.high8) : codes;
}

// N vectors of 16 channels; four vectors are packed at a time: 4 / N pixels, one pixel for N = 3.
//
// While the tile unit works, the second port of 512-bit vectors computes no floats, minima or maxima (measured on
// Sapphire Rapids; it still adds, shuffles and packs integers). So with kSaturating the codes of the first of two
// roundings, whose limits are 0 and 255, get these from packs instead: 7 instead of 9 instructions for the other port.
template <int N, Sum S, Values V, bool kSaturating = false>
class CodesFinish {
 public:
  static constexpr int64_t kPixels = N >= 3 ? 1 : 4 / N;  // at a time

  explicit OCTET_INLINE CodesFinish(const FinishJob& job)
      : k_(*job.constants),
        lines_(job.constants->lines),
        at_(job.pixels),
        sums_(job.sums),
        residual_(job.residual),
        out_(job.out),
        last_(job.count - 1),
        four_(job.epilogue->out.c_pitch < 16) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      start_[n] = _mm512_loadu_si512(job.acc_init + job.channel + n * 16);
      m_[n] = _mm512_loadu_ps(job.epilogue->multiplier + job.channel + n * 16);
      if constexpr (V == Values::kRelu || V == Values::kShortLines) {
        constexpr bool kIsRelu = V == Values::kRelu;
        start_[n] = _mm512_add_epi32(start_[n], _mm512_set1_epi32(kIsRelu ? kBitsOfTwo23 : kBitsOfMiddle));
        correction_[n] = _mm512_mul_ps(m_[n], _mm512_set1_ps(kIsRelu ? 8388608.0f : kMiddle));
      }
    }
  }

  // kPixels pixels from `p` on; those beyond the last are the last again.
  OCTET_INLINE void pixels(int64_t p) const {
    if constexpr (N >= 3) {
      const Z codes = codes_of(p, 0, p, 1, p, 2, p, N - 1);
      if constexpr (N == 4) {
        _mm512_storeu_si512(out(p), codes);
      } else {
        store32(p, _mm512_castsi512_si256(codes));
        store16(reinterpret_cast<uint8_t*>(out(p)) + 32, _mm512_extracti32x4_epi32(codes, 2));
      }
    } else if constexpr (N == 2) {
      const int64_t q = smaller(p + 1, last_);
      const Z codes = codes_of(p, 0, p, 1, q, 0, q, 1);
      store32(p, _mm512_castsi512_si256(codes));
      store32(q, _mm512_extracti64x4_epi64(codes, 1));
    } else {
      const int64_t p1 = smaller(p + 1, last_), p2 = smaller(p + 2, last_), p3 = smaller(p + 3, last_);
      const Z codes = codes_of(p, 0, p1, 0, p2, 0, p3, 0);
      const auto at = [&](int64_t pixel) { return reinterpret_cast<uint8_t*>(out(pixel)); };
      store_lane<0>(at(p), codes, four_);
      store_lane<1>(at(p1), codes, four_);
      store_lane<2>(at(p2), codes, four_);
      store_lane<3>(at(p3), codes, four_);
    }
  }

 private:
  static constexpr Numbers kNumbers = V <= Values::kTable     ? Numbers::kAny
                                      : V <= Values::kBounded ? Numbers::kBounded
                                                              : Numbers::kNoZeroPoint;

  OCTET_INLINE std::byte* out(int64_t pixel) const {
    return out_ + at_.out[pixel];
  }
  OCTET_INLINE void store32(int64_t pixel, __m256i codes) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out(pixel)), codes);
  }
  OCTET_INLINE Z sum_of(int64_t pixel, int n) const {
    return _mm512_add_epi32(_mm512_load_si512(sums_ + at_.sums[pixel] + n * 1024), start_[n]);
  }
  OCTET_INLINE const uint8_t* residual_of(int64_t pixel, int n) const {
    return reinterpret_cast<const uint8_t*>(residual_ + at_.residual[pixel] + n * 16);
  }
  OCTET_INLINE Z value(int64_t pixel, int n) const {
    const uint8_t* r = nullptr;
    if constexpr (S != Sum::kNone) r = residual_of(pixel, n);
    const Z sum = sum_of(pixel, n);
    if constexpr (V == Values::kRelu || V == Values::kShortLines)  // exact: see the shortcuts
      return _mm512_cvtps_epi32(_mm512_fmsub_ps(_mm512_castsi512_ps(sum), m_[n], correction_[n]));
    return scale<S, kNumbers>(sum, m_[n], r, k_);
  }
  OCTET_INLINE Z mid_of(int64_t pixel, int n) const {
    const __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum_of(pixel, n)), m_[n]);
    return _mm512_add_epi32(_mm512_cvtps_epi32(v), k_.mid_zero_point);
  }
  OCTET_INLINE Z codes_of(int64_t p0, int n0, int64_t p1, int n1, int64_t p2, int n2, int64_t p3, int n3) const {
    if constexpr (kSaturating) {
      const Z mid = _mm512_packus_epi16(_mm512_packs_epi32(mid_of(p0, n0), mid_of(p1, n1)),
                                        _mm512_packs_epi32(mid_of(p2, n2), mid_of(p3, n3)));
      const auto add = [&](int part, int64_t pixel, int n) __attribute__((always_inline)) {
        const Z places = _mm512_broadcast_i32x4(_mm_setr_epi32(part * 4, part * 4 + 1, part * 4 + 2, part * 4 + 3));
        const __m512 q = _mm512_sub_ps(bytes_on_two23(mid, places), k_.mid_start);
        const __m512 r = residual_product<kNumbers>(residual_of(pixel, n), k_);
        if constexpr (S == Sum::kTwiceFused) return _mm512_cvtps_epi32(_mm512_fmadd_ps(q, k_.mid_multiplier, r));
        return _mm512_cvtps_epi32(_mm512_add_ps(_mm512_mul_ps(q, k_.mid_multiplier), r));
      };
      return pack_codes<V>(add(0, p0, n0), add(1, p1, n1), add(2, p2, n2), add(3, p3, n3), k_, lines_);
    } else {
      return pack_codes<V>(value(p0, n0), value(p1, n1), value(p2, n2), value(p3, n3), k_, lines_);
    }
  }

  KeptConstants<V> k_;
  const Lines lines_;
  const PixelList at_;
  const std::byte *sums_, *residual_;
  std::byte* out_;
  const int64_t last_;
  const bool four_;
  Z start_[N];
  __m512 m_[N], correction_[N];
};

template <int N, Sum S, Values V, bool kSaturating = false>
void finish_codes_block(FinishJob& job, int64_t pixels) {
  const int64_t end = smaller(job.count, job.next + pixels);
  if (job.next >= end) return;
  using Finish = CodesFinish<N, S, V, kSaturating>;
  const Finish finish(job);
  for (int64_t p = job.next; p < end; p += Finish::kPixels) finish.pixels(p);
  job.next = end;
}

// With a table behind the codes.
template <int N, Sum S>
void finish_table_block(FinishJob& job, int64_t pixels) {
  const int64_t first = job.next;
  finish_codes_block<N, S, Values::kAny>(job, pixels);
  const int64_t bytes = smaller(N * 16, job.epilogue->out.c_pitch);
  for (int64_t p = first; p < job.next; ++p) {
    auto* codes = reinterpret_cast<uint8_t*>(job.out + job.pixels.out[p]);
    look_up(job.epilogue->table, codes, codes, bytes);
  }
}

template <int N>
void finish_floats_block(FinishJob& job, int64_t pixels) {
  const Epilogue& e = *job.epilogue;
  const int64_t end = smaller(job.count, job.next + pixels);
  const __m512 low = _mm512_set1_ps(e.float_lo), high = _mm512_set1_ps(e.float_hi);
  for (int64_t p = job.next; p < end; ++p)
    for (int n = 0; n < N; ++n) {
      const int64_t channel = job.channel + n * 16, lanes = smaller(16, e.out.c - channel);
      if (lanes <= 0) break;
      const auto mask = static_cast<__mmask16>((1u << lanes) - 1);
      const Z sum = _mm512_add_epi32(_mm512_load_si512(job.sums + job.pixels.sums[p] + n * 1024),
                                     _mm512_loadu_si512(job.acc_init + channel));
      __m512 y = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(e.multiplier + channel));
      if (e.float_residual)
        y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(mask, job.residual + job.pixels.residual[p] + n * 64));
      // A residual may hold NaN, which stays (float_limits.h).
      _mm512_mask_storeu_ps(job.out + job.pixels.out[p] + n * 64, mask, _mm512_min_ps(high, _mm512_max_ps(low, y)));
    }
  job.next = end;
}

using FinishFunction = void(FinishJob&, int64_t);

struct FinishChoice {
  FinishFunction* function = nullptr;
  InLine in_line = InLine::kNot;
};

template <int N, Sum S>
FinishChoice finish_for(Values values, bool saturating = false) {
  if constexpr (N >= 3 && (S == Sum::kTwice || S == Sum::kTwiceFused)) {
    if (saturating && values == Values::kBounded) return {finish_codes_block<N, S, Values::kBounded, true>};
    if (saturating && values >= Values::kPlain) return {finish_codes_block<N, S, Values::kPlain, true>};
  }
  constexpr bool kInLine = S == Sum::kNone;
  switch (values) {
    case Values::kAny:
      return {finish_codes_block<N, S, Values::kAny>};
    case Values::kTable:
      return {finish_codes_block<N, S, Values::kTable>};
    case Values::kShortLines:
      return {finish_codes_block<N, S, Values::kShortLines>};
    case Values::kLines:
      return {finish_codes_block<N, S, Values::kLines>};
    case Values::kBounded:
      return {finish_codes_block<N, S, Values::kBounded>, kInLine ? InLine::kBounded : InLine::kNot};
    default:
      return {finish_codes_block<N, S, Values::kPlain>, kInLine ? InLine::kPlain : InLine::kNot};
  }
}

// The function for blocks of N x 16 channels of a layer whose sums have `products` products each.
template <int N>
FinishChoice choose_finish(const ConvArgs& a, const Constants& c, int64_t products) {
  const Epilogue& e = a.epilogue;
  if (e.out.data == nullptr) return {finish_floats_block<N>};
  if (e.table && !c.table) {
    if (e.residual.data == nullptr) return {finish_table_block<N, Sum::kNone>};
    return {e.rounds_twice ? finish_table_block<N, Sum::kTwice> : finish_table_block<N, Sum::kOnce>};
  }
  const bool zero = e.out.zero_point == 0 && (e.residual.data == nullptr || e.residual.zero_point == 0);
  const Values values = c.lines.rows && lines_shortcut(e)  ? Values::kShortLines
                        : c.bounded && c.lines.rows        ? Values::kLines
                        : e.table || e.function            ? Values::kTable
                        : !c.bounded                       ? Values::kAny
                        : zero && e.lo == 0 && e.hi == 255 ? Values::kPlain
                                                           : Values::kBounded;
  if (e.residual.data) {
    const bool saturating = e.mid_lo == 0 && e.mid_hi == 255;  // with N < 3 no gain was seen
    if (!e.rounds_twice) return finish_for<N, Sum::kOnce>(values);
    return e.sum_fuses ? finish_for<N, Sum::kTwiceFused>(values, saturating)
                       : finish_for<N, Sum::kTwice>(values, saturating);
  }
  if (relu_shortcut(a, products)) return {finish_codes_block<N, Sum::kNone, Values::kRelu>, InLine::kRelu};
  return finish_for<N, Sum::kNone>(values);
}

// What blocks of N x 16 channels do in line.
template <int N, InLine F>
using InLineFinish = CodesFinish<N, Sum::kNone,
                                 F == InLine::kRelu    ? Values::kRelu
                                 : F == InLine::kPlain ? Values::kPlain
                                                       : Values::kBounded>;

}  // namespace
}  // namespace octet::kernels
