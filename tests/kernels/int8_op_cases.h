// Random tensors for kernels without weights, and every instruction set against a plain formula.
#pragma once
#include <gtest/gtest.h>

#include "kernels/conv_cases.h"

namespace octet::kernels {
namespace {

using testing::OwnedTensor;
using testing::random_tensor;

inline int64_t pick(std::mt19937& rng, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}
inline float uniform(std::mt19937& rng, float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(rng);
}

inline Halo random_halo(std::mt19937& rng) {
  return {pick(rng, 0, 1), pick(rng, 0, 1), pick(rng, 0, 2), pick(rng, 0, 1)};
}
inline OwnedTensor random_like(std::mt19937& rng, int64_t n, int64_t h, int64_t w, int64_t c) {
  return random_tensor(rng, n, h, w, c, random_halo(rng), static_cast<int32_t>(pick(rng, 0, 255)));
}
inline OwnedTensor random_source(std::mt19937& rng, int64_t n, int64_t h, int64_t w, int64_t c) {
  return testing::random_input(rng, n, h, w, c, random_halo(rng), static_cast<int32_t>(pick(rng, 0, 255)));
}

inline int code(const QTensor& t, int64_t n, int64_t y, int64_t x, int64_t c) {
  return t.data[n * t.image_stride + y * t.row_stride + x * t.c_pitch + c];
}

// Calls check(n, y, x, c, code) for every real element.
template <typename Check>
void for_each(const QTensor& t, Check&& check) {
  for (int64_t n = 0; n < t.n; ++n)
    for (int64_t y = 0; y < t.h; ++y)
      for (int64_t x = 0; x < t.w; ++x)
        for (int64_t c = 0; c < t.c; ++c) check(n, y, x, c, code(t, n, y, x, c));
}

// Runs the kernel of every instruction set in two shares over `work` and compares with want(n, y, x, c).
template <typename Run, typename Want>
void check_on_every_isa(std::mt19937& rng, OwnedTensor& out, int64_t work, Run&& run, Want&& want) {
  for (Isa isa : supported_isas()) {
    for (auto& b : out.bytes) b = 0xa5;
    const int64_t cut = pick(rng, 0, work);
    run(kernels(isa), Range{0, cut});
    run(kernels(isa), Range{cut, work});
    for_each(out.view, [&](int64_t n, int64_t y, int64_t x, int64_t c, int got) {
      if (::testing::Test::HasFailure()) return;
      ASSERT_EQ(got, want(n, y, x, c)) << isa_name(isa) << " at " << n << "," << y << "," << x << "," << c;
    });
    if (::testing::Test::HasFailure()) return;
  }
}

struct Shape {
  int64_t n, h, w, c;
};
inline Shape random_shape(std::mt19937& rng) {
  return {pick(rng, 1, 2), pick(rng, 1, 7), pick(rng, 1, 19), pick(rng, 1, 150)};
}
// Channel counts around the special layouts: images, one block, several blocks.
inline int64_t random_channels(std::mt19937& rng) {
  constexpr int64_t kChannels[] = {1, 3, 4, 5, 16, 17, 32, 48, 64, 65, 96};
  return kChannels[pick(rng, 0, 10)];
}

}  // namespace
}  // namespace octet::kernels
