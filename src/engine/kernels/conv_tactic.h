// The ways to compute one INT8 convolution. Every instruction set offers a list of tactics; "direct", which takes every
// convolution, is among them. All give the same bytes, so which one runs is a matter of time alone: the engine asks the
// cost functions or a stopwatch (engine/tactics.h) and stores the answer by name.
//
// A new tactic is one file with these functions and one line that adds it to the table of its instruction set.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/cpu_features.h"
#include "engine/kernels/int8_conv.h"

namespace octet::kernels {

struct ConvTactic {
  const char* name = "direct";  // unique within its instruction set; stored in engine files
  Isa isa = Isa::kScalar;       // the set it was written for
  // `args` has geometry, weights, acc_init and epilogue; its tensors have pitches, strides and zero points, but their
  // `data` only tells whether they exist. nullptr: takes every convolution.
  bool (*applies)(const ConvArgs& args) = nullptr;
  // Bytes of the weights in an order of the tactic's own, and how they are made from the packed ones (once for all
  // contexts of an engine; 64-byte aligned). nullptr, or 0 bytes: the tactic works on the packed weights; else it
  // reads these alone, as the packed ones may be gone.
  int64_t (*prepared_bytes)(const ConvArgs& args) = nullptr;
  void (*prepare)(const ConvArgs& args, std::byte* prepared) = nullptr;
  // They begin with those of every block of output channels, each as large as the packed ones: the convolution before
  // fetches the first of them.
  bool prepared_by_blocks = false;
  // Working memory of one thread, 64-byte aligned, with unspecified content. nullptr: none.
  int64_t (*scratch_bytes)(const ConvArgs& args) = nullptr;
  // Memory of one thread of a context for this convolution alone, 64-byte aligned, that is zero before the first run
  // and keeps its content: what a run learns about the codes may make later ones faster. nullptr: none.
  int64_t (*kept_bytes)(const ConvArgs& args) = nullptr;
  ConvFunction* run = nullptr;  // with args.prepared, args.scratch and args.kept set
  // `run` fetches what args.soon names, when its own weights are all there.
  bool fetches_ahead = false;
  // Rows of the output that are made together; fewer at a time, and others are made in vain.
  int64_t rows_at_once = 1;
  // How threads share the work, as conv_share() says. nullptr: conv_share().
  ConvShare (*share)(const ConvArgs& args, int part, int parts) = nullptr;
  // Estimated microseconds with this many threads on a typical machine at 3.5 GHz, for the choice without a stopwatch.
  double (*cost)(const ConvArgs& args, int threads) = nullptr;
};

// The share of thread `part` of `parts` in a convolution by this tactic.
ConvShare tactic_share(const ConvTactic& tactic, const ConvArgs& args, int part, int parts);

// Multiplications with real channels: n * out_h * out_w * out_channels * kernel_h * kernel_w * in_channels / groups.
double conv_macs(const ConvArgs& args);
// A cost function's usual body: the multiplications at this rate per core and cycle, on all threads.
double cost_at_rate(const ConvArgs& args, int threads, double macs_per_cycle);

}  // namespace octet::kernels
