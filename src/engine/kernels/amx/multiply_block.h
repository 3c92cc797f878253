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
  int64_t pixel_step = 0;    // bytes between the pixels of a tile
  int64_t block_bytes = 0;   // between the weights of one block of 16 channels and the next, within a step
  int64_t finish_chunk = 0;  // pixels of `job` to finish in each step
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

// `start`: sums to go on from, or nullptr to start from zero.
template <int MT, int NT, int M, int N, Walk W, bool First>
OCTET_INLINE void multiply_step(const BlockPlan& p, const KStep& step, const uint8_t* const (&in)[M], const int8_t* w,
                                std::byte* previous, const std::byte* start) {
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

// The tile unit does not rename sums: storing all four and only then starting over would leave it idle for the whole
// store. So the previous block's sums are stored one by one in the first step, each just ahead of the multiply that
// reuses its tile. The block before that is finished during all steps.
template <int MT, int NT, int M, int N, Walk W>
void multiply_block(const BlockPlan& p, const uint8_t* const* tiles, const int8_t* w, std::byte* previous,
                    const std::byte* start, FinishJob& job, Prefetch& prefetch) {
  const uint8_t* in[M];
  for (int m = 0; m < M; ++m) in[m] = tiles[m];
  multiply_step<MT, NT, M, N, W, true>(p, p.steps[0], in, w, previous, start);
  store_other_sums<MT, NT, M, N>(previous);
  job.finish(job, p.finish_chunk);
  prefetch.some();
  for (int64_t s = 1; s < p.step_count; ++s) {
    multiply_step<MT, NT, M, N, W, false>(p, p.steps[s], in, w, previous, start);
    if (job.next < job.count) job.finish(job, p.finish_chunk);
    prefetch.some();
  }
  if (job.next < job.count) job.finish(job, job.count);
}

using MultiplyFunction = void(const BlockPlan&, const uint8_t* const*, const int8_t*, std::byte*, const std::byte*,
                              FinishJob&, Prefetch&);

// The function for a block of `m` x `n` tiles, 1 <= m <= MT, 1 <= n <= NT.
template <int MT, int NT, Walk W>
MultiplyFunction* choose_multiply(int64_t m, int64_t n) {
  static constexpr MultiplyFunction* kFunctions[4][4] = {
      {multiply_block<MT, NT, 1, 1, W>, multiply_block<MT, NT, 1, (NT < 2 ? 1 : 2), W>,
       multiply_block<MT, NT, 1, (NT < 3 ? 1 : 3), W>, multiply_block<MT, NT, 1, (NT < 4 ? 1 : 4), W>},
      {multiply_block<MT, NT, (MT < 2 ? 1 : 2), 1, W>, multiply_block<MT, NT, (MT < 2 ? 1 : 2), (NT < 2 ? 1 : 2), W>,
       nullptr, nullptr},
      {multiply_block<MT, NT, (MT < 3 ? 1 : 3), 1, W>, nullptr, nullptr, nullptr},
      {multiply_block<MT, NT, (MT < 4 ? 1 : 4), 1, W>, nullptr, nullptr, nullptr}};
  return kFunctions[m - 1][n - 1];
}

}  // namespace
}  // namespace octet::kernels
