// One block of tiles: M tiles of pixels x N tiles of 16 channels, all of K.
#pragma once
#include "engine/kernels/amx/finish_block.h"
#include "engine/kernels/amx/tile_unit.h"

namespace octet::kernels {
namespace {

// One step along K: byte offsets of the activations (from a tile's first pixel) and of the weights (from those of a
// block of 16 channels).
struct KStep {
  int32_t in = 0, weights = 0;
  int32_t fetch = 0;  // Walk::kSliced: the first of the pixels to bring into the L1 cache meanwhile
};

// How a block walks along K.
enum class Walk {
  kWhole,
  kWholeStreaming,  // weights past the L1 cache
  kSliced           // one slice of K of many blocks before the next slice, whose sums start from those of the last
};

struct BlockPlan {
  const KStep* steps = nullptr;
  int64_t step_count = 0;
  int64_t pixel_step = 0;   // bytes between the pixels of a tile
  int64_t block_bytes = 0;  // between the weights of one block of 16 channels and the next, within a step
};

// Weights that later blocks will need, fetched into the L2 cache a few lines a step.
struct Prefetch {
  const int8_t *next = nullptr, *end = nullptr;
  int64_t lines = 0;  // a step

  OCTET_INLINE void some() {
    for (int64_t i = 0; i < lines && next < end; ++i, next += 64) _mm_prefetch(next, _MM_HINT_T1);
  }
};

// Which tile is which for a register blocking of MT x NT: sums in 0-3, then activations, then weights up to 7.
template <int MT, int NT>
struct Roles {
  static constexpr int kActivations = MT == 2 ? 2 : MT > 2 ? 3 : 1;
  static constexpr int kWeights = 4 - kActivations < NT ? 4 - kActivations : NT;
  static constexpr int kFirstWeights = 4 + kActivations;
  static constexpr int sum(int m, int n) { return m * NT + n; }
  static constexpr int activations(int m) { return 4 + m % kActivations; }
  static constexpr int weights(int n) { return kFirstWeights + n % kWeights; }
};

// Calls f with 0 .. Count - 1 as constants.
template <int I>
struct Index {
  static constexpr int value = I;
};
template <int Count, int I = 0, typename F>
OCTET_INLINE void repeat(const F& f) {
  if constexpr (I < Count) {
    f(Index<I>{});
    repeat<Count, I + 1>(f);
  }
}

// `sums`: where the previous block's sums go, tile (m, n) at (m * NT + n) * kTileBytes.
template <int MT, int NT, int M, int N>
OCTET_INLINE void store_sum(std::byte* sums) {
  using R = Roles<MT, NT>;
  tile_store<R::sum(M, N)>(sums + R::sum(M, N) * kTileBytes, 64);
}

// Pixels that a step of Walk::kSliced fetches.
constexpr int kFetchedPixels = 12;

// `start`: sums to go on from, or nullptr to start from zero. `after(i)` is called behind the i-th multiplication.
template <int MT, int NT, int M, int N, Walk W, bool First, typename After>
OCTET_INLINE void multiply_step(const BlockPlan& p, const KStep& step, const uint8_t* const (&in)[M], const int8_t* w,
                                std::byte* previous, const std::byte* start, const After& after) {
  using R = Roles<MT, NT>;
  const int64_t at = step.in, stride = p.pixel_step;
  const int8_t* weights = w + step.weights;
  const auto load_weights = [&](auto n) __attribute__((always_inline)) {
    constexpr int T = R::weights(decltype(n)::value);
    if constexpr (W == Walk::kWholeStreaming) {
      tile_load_streaming<T>(weights + n.value * p.block_bytes, 64);
    } else {
      tile_load<T>(weights + n.value * p.block_bytes, 64);
    }
  };
  const auto multiply = [&](auto m, auto n) __attribute__((always_inline)) {
    constexpr int kM = decltype(m)::value, kN = decltype(n)::value;
    if constexpr (First) {
      store_sum<MT, NT, kM, kN>(previous);
      if (W == Walk::kSliced && start != nullptr) {
        tile_load<R::sum(kM, kN)>(start + R::sum(kM, kN) * kTileBytes, 64);
      } else {
        tile_zero<R::sum(kM, kN)>();
      }
    }
    tile_multiply<R::sum(kM, kN), R::activations(kM), R::weights(kN)>();
    if constexpr (W == Walk::kSliced) {
      constexpr int kShare = kFetchedPixels / (M * N);
      const uint8_t* pixel = in[0] + step.fetch + (kM * N + kN) * kShare * stride;
#pragma GCC unroll 12
      for (int i = 0; i < kShare; ++i, pixel += stride) _mm_prefetch(pixel, _MM_HINT_T0);
    }
  };
  // Weights first where they come from afar: of 2x2 tiles, both pixels meet the first weights while the second are
  // on their way.
  if constexpr (W != Walk::kWhole && MT == 2) {
    repeat<N>([&](auto n) __attribute__((always_inline)) {
      load_weights(n);
      repeat<M>([&](auto m) __attribute__((always_inline)) {
        constexpr int kM = decltype(m)::value;
        if constexpr (decltype(n)::value == 0) tile_load<R::activations(kM)>(in[kM] + at, stride);
        multiply(m, n);
        after(n.value * M + m.value);
      });
    });
    return;
  }
  constexpr bool kKept = N <= R::kWeights;  // every weight tile has its own register
  repeat<M>([&](auto m) __attribute__((always_inline)) {
    constexpr int kM = decltype(m)::value;
    tile_load<R::activations(kM)>(in[kM] + at, stride);
    repeat<N>([&](auto n) __attribute__((always_inline)) {
      if constexpr (!kKept || kM == 0) load_weights(n);
      multiply(m, n);
      after(m.value * N + n.value);
    });
  });
}

// Stores every sum that a block of M x N does not reuse.
template <int MT, int NT, int M, int N>
OCTET_INLINE void store_other_sums(std::byte* sums) {
  repeat<MT>([&](auto m) __attribute__((always_inline)) {
    repeat<NT>([&](auto n) __attribute__((always_inline)) {
      constexpr int kM = decltype(m)::value, kN = decltype(n)::value;
      if constexpr (kM >= M || kN >= N) store_sum<MT, NT, kM, kN>(sums);
    });
  });
}

// The block before the last is finished by calls, some pixels after every step.
template <int MT, int NT, int M, int N>
class FinishByCalls {
 public:
  FinishByCalls(const BlockPlan& p, FinishJob& job) : job_(job) {
    // Whole groups of four vectors, and enough of them a call to pay for the constants.
    const int64_t even = (job.count + p.step_count - 1) / p.step_count;
    pixels_ = even <= 4 ? 4 : (even + 3) / 4 * 4;
  }
  OCTET_INLINE void after_multiplication(int) const {}
  OCTET_INLINE void after_step() const {
    if (job_.next < job_.count) job_.finish(job_, pixels_);
  }
  OCTET_INLINE void rest() const {
    if (job_.next < job_.count) job_.finish(job_, job_.count);
  }

 private:
  FinishJob& job_;
  int64_t pixels_;
};

// It is finished four vectors at a time between the multiplications. A call for so few would cost more than it gains.
// Measured to gain 3 to 12 % with 1x4 tiles, no residual and a few steps; elsewhere to lose up to 10 %.
constexpr int64_t kInLineSteps = 4;
template <int MT, int NT, InLine F>
class FinishInLine {
 public:
  OCTET_INLINE FinishInLine(const BlockPlan& p, FinishJob& job) : finish_(job), count_(job.count) {
    const int64_t pieces = (count_ + kPixels - 1) / kPixels, each = (pieces + p.step_count - 1) / p.step_count;
#pragma GCC unroll 4
    for (int i = 0; i < kMultiplications; ++i)
      share_[i] = (each * (i + 1) / kMultiplications - each * i / kMultiplications) * kPixels;
    job.next = job.count;
  }
  OCTET_INLINE void after_multiplication(int i) {
    for (const int64_t end = smaller(next_ + share_[i], count_); next_ < end; next_ += kPixels) finish_.pixels(next_);
  }
  OCTET_INLINE void after_step() const {}
  OCTET_INLINE void rest() const {}

 private:
  static constexpr int64_t kPixels = InLineFinish<NT, F>::kPixels;
  static constexpr int kMultiplications = MT * NT;
  const InLineFinish<NT, F> finish_;
  const int64_t count_;
  int64_t next_ = 0;
  int64_t share_[kMultiplications];  // pixels behind each multiplication of a step
};

// The tile unit does not rename sums: storing all four and only then starting over would leave it idle for the whole
// store. So the previous block's sums are stored one by one in the first step, each just ahead of the multiply that
// reuses its tile. The block before that is finished during all steps.
template <int MT, int NT, int M, int N, Walk W, typename Finish>
void multiply_block(const BlockPlan& p, const uint8_t* const* tiles, const int8_t* w, std::byte* previous,
                    const std::byte* start, FinishJob& job, Prefetch& prefetch) {
  const uint8_t* in[M];
  for (int m = 0; m < M; ++m) in[m] = tiles[m];
  Finish finish(p, job);
  const auto after = [&](int i) __attribute__((always_inline)) {
    finish.after_multiplication(i);
  };
  multiply_step<MT, NT, M, N, W, true>(p, p.steps[0], in, w, previous, start, after);
  store_other_sums<MT, NT, M, N>(previous);
  finish.after_step();
  prefetch.some();
  for (int64_t s = 1; s < p.step_count; ++s) {
    multiply_step<MT, NT, M, N, W, false>(p, p.steps[s], in, w, previous, start, after);
    finish.after_step();
    prefetch.some();
  }
  finish.rest();
}

using MultiplyFunction = void(const BlockPlan&, const uint8_t* const*, const int8_t*, std::byte*, const std::byte*,
                              FinishJob&, Prefetch&);

template <int MT, int NT, int M, int N, Walk W>
constexpr MultiplyFunction* kMultiplyByCalls = multiply_block<MT, NT, M, N, W, FinishByCalls<MT, NT, M, N>>;

// The function for a block of `m` x `n` tiles, 1 <= m <= MT, 1 <= n <= NT, that finishes `job` meanwhile.
template <int MT, int NT, Walk W>
MultiplyFunction* choose_multiply(int64_t m, int64_t n, const BlockPlan& p, const FinishJob& job) {
  static constexpr MultiplyFunction* kByCalls[4][4] = {
      {kMultiplyByCalls<MT, NT, 1, 1, W>, kMultiplyByCalls<MT, NT, 1, (NT < 2 ? 1 : 2), W>,
       kMultiplyByCalls<MT, NT, 1, (NT < 3 ? 1 : 3), W>, kMultiplyByCalls<MT, NT, 1, (NT < 4 ? 1 : 4), W>},
      {kMultiplyByCalls<MT, NT, (MT < 2 ? 1 : 2), 1, W>,
       kMultiplyByCalls<MT, NT, (MT < 2 ? 1 : 2), (NT < 2 ? 1 : 2), W>, nullptr, nullptr},
      {kMultiplyByCalls<MT, NT, (MT < 3 ? 1 : 3), 1, W>, nullptr, nullptr, nullptr},
      {kMultiplyByCalls<MT, NT, (MT < 4 ? 1 : 4), 1, W>, nullptr, nullptr, nullptr}};
  if constexpr (W == Walk::kWhole && NT == 4) {
    if (n == NT && p.step_count > 1 && p.step_count <= kInLineSteps) switch (job.in_line) {
        case InLine::kRelu:
          return multiply_block<MT, NT, MT, NT, W, FinishInLine<MT, NT, InLine::kRelu>>;
        case InLine::kPlain:
          return multiply_block<MT, NT, MT, NT, W, FinishInLine<MT, NT, InLine::kPlain>>;
        case InLine::kBounded:
          return multiply_block<MT, NT, MT, NT, W, FinishInLine<MT, NT, InLine::kBounded>>;
        case InLine::kNot:
          break;
      }
  }
  return kByCalls[m - 1][n - 1];
}

}  // namespace
}  // namespace octet::kernels
