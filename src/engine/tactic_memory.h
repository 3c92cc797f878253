// Choosing a kernel for every convolution where some take memory: kernels that make weights of their own (Winograd:
// eight times those of the file) have to be worth it.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace octet::engine {

// Such weights cost 0.4 ms a MiB at load, and this many microseconds a MiB in the choice...
inline constexpr double kPriceOfMiB = 100;
// ...but less until all of them, with the memory to work in, take this share of the file's weights, or so many MiB: so
// a network whose layers each gain a little gains it without growing much.
inline constexpr double kCheapPriceOfMiB = 20, kCheapShare = 0.25, kCheapMiB = 6;

// What one kernel takes for one convolution.
struct TacticCost {
  double microseconds = 0;
  double mib = 0;          // of weights beyond those of the file
  double working_mib = 0;  // of all threads, which one convolution after the other uses
};

// The index of the kernel for each convolution. steps: of each its kernels, the one to keep in doubt first; may be
// empty (then 0). Another is taken only if time and price together come to less than `bar` times those of the first.
// Of the kernels that only the lower price pays for, those with the most gain a MiB come first.
std::vector<size_t> choose_within_memory(std::span<const std::vector<TacticCost>> steps, double weights_mib,
                                         double bar = 1);

}  // namespace octet::engine
