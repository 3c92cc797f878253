// Fetching weights while others are multiplied.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/kernels/winograd/transforms.h"

namespace octet::kernels {
namespace {

// Weights that a product fetches for a later one: `lines` cache lines with every chunk of input channels, and as many
// `u_block` words further on for each further block of output channels.
struct Ahead {
  const std::byte* at;
  int64_t lines;

  template <int V>
  OCTET_FLAT void fetch(int64_t u_block) {
    for (int64_t i = 0; i < lines; ++i, at += 64)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) __builtin_prefetch(at + 2 * v * u_block);
  }
};

}  // namespace
}  // namespace octet::kernels
