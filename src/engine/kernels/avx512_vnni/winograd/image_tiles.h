// Products of the tiles of image.cc, while the tiles before are finished.
//
// With only six pairs of input channels to add up, products are no more than the work that is left when they are done.
// So it comes between them, by hand: a pass adds up 24 sums (a row of positions of four tiles), and between its
// products two columns of earlier tiles go from sums to codes.
#pragma once
#include "engine/kernels/avx512_vnni/register_finish.h"
#include "engine/kernels/winograd/recover.h"

namespace octet::kernels {
namespace {

constexpr int64_t kTileOutputs = 3;  // along each axis
constexpr int kSlots = 4;            // tiles of a pass
// V of a tile: [column of positions][two rows of positions][row phase][row][6 words and padding]
constexpr int64_t kPlaceBytes = 16, kPhaseBytes = 2 * kPlaceBytes, kPositionColumnBytes = 3 * 2 * kPhaseBytes;
constexpr int64_t kTileBytes = 6 * kPositionColumnBytes;
constexpr int64_t row_place(int64_t row) {
  return row / 2 * 2 * kPhaseBytes + row % 2 * kPlaceBytes;
}
constexpr int kPairs = 6;  // of input channels: three of each row phase
constexpr int64_t kPassWeightBytes = kPairs * 6 * 64;
// Of M, in int32: [tile][row of positions][column of outputs][16 output channels]
constexpr int64_t kColumnStep = kChannelBlock, kRowStep = kTileOutputs * kColumnStep, kTileStep = 6 * kRowStep;

// One axis: from positions to outputs, see image.cc.
OCTET_INLINE void transform_three(const Vectors64::Sums (&m)[6], Vectors64::Sums (&y)[3]) {
  const Vectors64::Sums s1 = m[1] + m[2], d1 = m[1] - m[2], s2 = m[3] + m[4], d2 = m[3] - m[4];
  y[0] = m[0] + s1 + s2;
  y[1] = d1 + d2 + d2;
  y[2] = s1 + ((s2 + m[5]) << 2);
}

// Of a block of 16 output channels.
struct alignas(64) BlockFinish {
  int32_t start[16];     // 64 times acc_init
  float multiplier[16];  // a 64th
  Z recovering, zero_point, low, high, order;
};

// A column of outputs of a tile: three pixels, one below the other. Rows that are not there are the last one that is:
// from below to above the rows are stored, so that it ends with its own codes.
struct Column {
  int64_t m = 0;  // bytes from the beginning of M
  uint8_t* out = nullptr;
  int64_t second = 0, third = 0;  // bytes from the first row to the others
};

// Tiles whose products are there: the columns, in the order in which they are finished.
struct Unfinished {
  const Column* columns = nullptr;
  const BlockFinish* block = nullptr;  // nullptr: there are none
  const int32_t* m = nullptr;
  int64_t channel = 0;
};

// kPlain: zero point 0, codes 0..255.
template <bool kPlain>
struct ColumnFinish {
  static constexpr int kSteps = 18;
  Z a, b, c, d, e;
  const std::byte* m;
  uint8_t* out;

  template <int Step>
  OCTET_INLINE void step(const Column& at, const Unfinished& before) {
    const BlockFinish& f = *before.block;
    if constexpr (Step == 0) {
      m = reinterpret_cast<const std::byte*>(before.m) + at.m, out = at.out + before.channel;
      load<1>(b, m), add<2>(a, b, m), subtract<2>(b, b, m);
    }
    if constexpr (Step == 1) load<3>(d, m), add<4>(c, d, m), subtract<4>(d, d, m);
    if constexpr (Step == 2) {
      add<5>(e, c, m);
      asm volatile("vpslld $2, %0, %0" : "+v"(e));
      add(d, d, d);
    }
    if constexpr (Step == 3) add(e, e, a), add(b, b, d), recover(e, f);
    if constexpr (Step == 4) add<0>(a, a, m), add(a, a, c), recover(b, f);
    if constexpr (Step == 5) start(e, f), recover(a, f);
    if constexpr (Step == 6) start(b, f), scale(e, f);
    if constexpr (Step == 7) start(a, f), scale(b, f);
    if constexpr (Step == 8) round(e), scale(a, f);
    if constexpr (Step == 9) round(b);
    if constexpr (Step == 10) round(a);
    if constexpr (Step == 11) pack_words(e, b);
    if constexpr (Step == 12) pack_words(a, a);
    if constexpr (Step == 13) pack_codes(e, a, f);
    if constexpr (Step == 14) order(e, f);
    if constexpr (Step == 15) store<0>(e, out + at.third);
    if constexpr (Step == 16) store<1>(e, out + at.second);
    if constexpr (Step == 17) store<2>(e, out);
  }

 private:
  template <int Row>
  static OCTET_INLINE void load(Z& to, const std::byte* m) {
    asm volatile("vmovdqa64 %c2(%1), %0" : "=v"(to) : "r"(m), "i"(Row * kRowStep * 4));
  }
  template <int Row>
  static OCTET_INLINE void add(Z& to, const Z& from, const std::byte* m) {
    asm volatile("vpaddd %c3(%2), %1, %0" : "=v"(to) : "v"(from), "r"(m), "i"(Row * kRowStep * 4));
  }
  template <int Row>
  static OCTET_INLINE void subtract(Z& to, const Z& from, const std::byte* m) {
    asm volatile("vpsubd %c3(%2), %1, %0" : "=v"(to) : "v"(from), "r"(m), "i"(Row * kRowStep * 4));
  }
  static OCTET_INLINE void add(Z& to, const Z& x, const Z& y) {
    asm volatile("vpaddd %2, %1, %0" : "=v"(to) : "v"(x), "v"(y));
  }
  static OCTET_INLINE void recover(Z& v, const BlockFinish& f) {
    asm volatile("vpmulld %1, %0, %0" : "+v"(v) : "m"(f.recovering));
  }
  static OCTET_INLINE void start(Z& v, const BlockFinish& f) {
    asm volatile(
        "vpaddd %1, %0, %0\n\t"
        "vcvtdq2ps %0, %0"
        : "+v"(v)
        : "m"(f.start));
  }
  static OCTET_INLINE void scale(Z& v, const BlockFinish& f) {
    asm volatile("vmulps %1, %0, %0" : "+v"(v) : "m"(f.multiplier));
  }
  // 64 codes in a from the words of a and c.
  static OCTET_INLINE void pack_codes(Z& a, Z& c, const BlockFinish& f) {
    if constexpr (!kPlain)
      asm volatile(
          "vpaddsw %2, %0, %0\n\t"
          "vpaddsw %2, %1, %1"
          : "+v"(a), "+v"(c)
          : "m"(f.zero_point));
    asm volatile("vpackuswb %1, %0, %0" : "+v"(a) : "v"(c));
  }
  static OCTET_INLINE void order(Z& codes, const BlockFinish& f) {
    if constexpr (!kPlain)
      asm volatile(
          "vpmaxub %1, %0, %0\n\t"
          "vpminub %2, %0, %0"
          : "+v"(codes)
          : "m"(f.low), "m"(f.high));
    Z order;
    asm volatile("vmovdqa64 %1, %0" : "=v"(order) : "m"(f.order));
    asm volatile("vpermd %0, %1, %0" : "+v"(codes) : "v"(order));
  }
  template <int Lane>
  static OCTET_INLINE void store(const Z& codes, uint8_t* out) {
    if constexpr (Lane == 0) {
      asm volatile("vmovdqu32 %x0, (%1)" : : "v"(codes), "r"(out) : "memory");
    } else {
      asm volatile("vextracti32x4 %2, %0, (%1)" : : "v"(codes), "r"(out), "i"(Lane) : "memory");
    }
  }
};

constexpr int kColumns = 2;  // that a pass finishes, as many as there are products for

// A row of positions. With seven taps along an axis the odd phase has only three: all its transformed weights are zero
// at the last position, where the fourth would be alone.
enum class Row { kOfEight, kOfSeven, kLastOfSeven };
constexpr int kOddRows = kPairs / 2;  // first pair of the odd row phase
constexpr bool has_products(Row row, int pair, int column) {
  if (row == Row::kLastOfSeven && pair >= kOddRows) return false;
  return row == Row::kOfEight || column < 5 || pair % kOddRows < 2;  // the last pair has two words of the odd phase
}
constexpr int count_products(Row row) {
  int count = 0;
  for (int i = 0; i < kPairs * 6; ++i) count += has_products(row, i / 6, i % 6);
  return count;
}

template <Row R>
struct PassProducts {
  static constexpr int kProducts = count_products(R);
  Z acc[6][kSlots];

  // Of a pair of channels in a column of positions.
  template <int Pair, int C, int T = 0>
  OCTET_INLINE void add(const std::byte* v, const Z& weights) {
    constexpr int kAt = T * kTileBytes + C * kPositionColumnBytes + Pair / 3 * kPhaseBytes + Pair % 3 * 4;
    asm volatile("vpdpwssd %c2(%1)%{1to16%}, %3, %0" : "+v"(acc[C][T]) : "r"(v), "i"(kAt), "v"(weights));
    if constexpr (T + 1 < kSlots) add<Pair, C, T + 1>(v, weights);
  }
  // kAt: of all products, kDone: those that are there before it.
  template <typename Finish, int kAt = 0, int kDone = 0>
  OCTET_INLINE void steps(const std::byte* v, const std::byte* weights, const Column* columns, const Unfinished& before,
                          Finish& finish) {
    if constexpr (kAt < kPairs * 6) {
      constexpr bool kThere = has_products(R, kAt / 6, kAt % 6);
      if constexpr (kThere) {
        Z w;
        asm volatile("vmovdqa64 %c2(%1), %0" : "=v"(w) : "r"(weights), "i"(kAt * 64));
        add<kAt / 6, kAt % 6>(v, w);
        if constexpr (requires { finish.a; }) {
          constexpr int kAll = kColumns * Finish::kSteps;
          finish_steps<kAll * kDone / kProducts, kAll*(kDone + 1) / kProducts>(finish, columns, before);
        }
      }
      steps<Finish, kAt + 1, kDone + kThere>(v, weights, columns, before, finish);
    }
  }

 private:
  template <int Step, int kEnd, typename Finish>
  static OCTET_INLINE void finish_steps(Finish& finish, const Column* columns, const Unfinished& before) {
    if constexpr (Step < kEnd) {
      finish.template step<Step % Finish::kSteps>(columns[Step / Finish::kSteps], before);
      finish_steps<Step + 1, kEnd>(finish, columns, before);
    }
  }
};
struct NoFinish {};

// A row of positions of four tiles, from `v` on, to M.
template <typename Finish, Row R>
__attribute__((noinline)) void run_pass(const std::byte* v, const std::byte* weights, int32_t* m, const Column* columns,
                                        const Unfinished& before) {
  PassProducts<R> p;
#pragma GCC unroll 6
  for (int c = 0; c < 6; ++c)
#pragma GCC unroll 4
    for (int t = 0; t < kSlots; ++t) asm volatile("vpxord %0, %0, %0" : "=v"(p.acc[c][t]));
  Finish finish;
  p.steps(v, weights, columns, before, finish);
#pragma GCC unroll 4
  for (int t = 0; t < kSlots; ++t) {
    Vectors64::Sums x[6], y[kTileOutputs];
#pragma GCC unroll 6
    for (int c = 0; c < 6; ++c) x[c] = (Vectors64::Sums)p.acc[c][t];
    transform_three(x, y);
#pragma GCC unroll 3
    for (int i = 0; i < kTileOutputs; ++i) store_vector(m + t * kTileStep + i * kColumnStep, y[i]);
  }
}

template <bool kPlain, int Step = 0>
OCTET_INLINE void run_steps(ColumnFinish<kPlain>& finish, const Column& column, const Unfinished& before) {
  finish.template step<Step>(column, before);
  if constexpr (Step + 1 < ColumnFinish<kPlain>::kSteps) run_steps<kPlain, Step + 1>(finish, column, before);
}
// Without products beside it.
template <bool kPlain>
__attribute__((noinline)) void finish_rest(const Unfinished& before) {
  if (before.block == nullptr) return;
  ColumnFinish<kPlain> finish;
  for (int64_t i = 0; i < kSlots * kTileOutputs; ++i) run_steps(finish, before.columns[i], before);
}

// All rows of positions of four tiles. kSeven: taps along both axes; eight otherwise.
template <bool kPlain, bool kSeven>
OCTET_INLINE void run_tiles(const std::byte* v, const std::byte* weights, int32_t* m, const Unfinished& before) {
  const auto pass = [&]<Row R>(int64_t row) __attribute__((always_inline)) {
    const std::byte* const row_weights = weights + row * kPassWeightBytes;
    if (before.block != nullptr) {
      run_pass<ColumnFinish<kPlain>, R>(v + row_place(row), row_weights, m + row * kRowStep,
                                        before.columns + row * kColumns, before);
    } else {
      run_pass<NoFinish, R>(v + row_place(row), row_weights, m + row * kRowStep, nullptr, before);
    }
  };
  for (int64_t row = 0; row < 5; ++row) pass.template operator()<kSeven ? Row::kOfSeven : Row::kOfEight>(row);
  pass.template operator()<kSeven ? Row::kLastOfSeven : Row::kOfEight>(5);
}

}  // namespace
}  // namespace octet::kernels
