// Random INT8 convolutions with everything they own, and an independent 64-bit formula for their results.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/kernels/kernel_table.h"

namespace octet::kernels::testing {

// A buffer with the view into it. The pad channels and the halo start with random bytes; the halo is then filled.
struct OwnedTensor {
  std::vector<uint8_t> bytes;
  QTensor view;
  Halo halo;
};
OwnedTensor random_tensor(std::mt19937& rng, int64_t n, int64_t h, int64_t w, int64_t c, const Halo& halo,
                          int32_t zero_point);

// The same, or now and then a range of the channels of a wider tensor, as a piece of a Split is read.
OwnedTensor random_input(std::mt19937& rng, int64_t n, int64_t h, int64_t w, int64_t c, const Halo& halo,
                         int32_t zero_point);

struct ConvShape {
  int64_t n = 1, in_h = 1, in_w = 1;
  ConvGeometry geometry;
  bool depthwise = false;
};
// Of a square image, by a square kernel, padded by half of it.
ConvShape square_conv(int64_t size, int64_t in_channels, int64_t out_channels, int64_t kernel, int64_t stride,
                      int64_t n = 1);
// What the epilogue does besides scaling. dense: no gaps between the rows of tensors, if nothing is padded.
struct ConvTail {
  bool residual = false, rounds_twice = false, table = false, to_float = false, narrow = false, dense = false,
       function = false;
};

struct ConvCase {
  ConvShape shape;
  ConvTail tail;
  std::string name;
  OwnedTensor in, out, residual;
  std::vector<int8_t> weights;  // ONNX order
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<int8_t, Free> packed;  // 64-byte aligned
  std::vector<int32_t> bias, acc_init;
  std::vector<float> multiplier, float_out, float_residual;
  std::vector<uint8_t> table, function;
  ConvArgs args;
};
// What the multipliers and starts of the case say of all channels; again after they are changed.
void set_limits(ConvCase& c);
std::unique_ptr<ConvCase> make_conv_case(std::mt19937& rng, const ConvShape& shape, const ConvTail& tail);
std::unique_ptr<ConvCase> random_conv_case(std::mt19937& rng, bool depthwise);

// Runs all work in randomly many shares.
void run_conv(const KernelTable& table, ConvCase& c, std::mt19937& rng);
// The same with one tactic, whose weights and scratch memory are made for the occasion and end at a guard of their own.
void run_tactic(const ConvTactic& tactic, ConvCase& c, std::mt19937& rng);
// These rows and blocks of case `name` alone; std::runtime_error if the tactic writes beyond the memory it asked for.
void run_tactic(const ConvTactic& tactic, ConvArgs args, std::span<const Range> rows, std::span<const Range> blocks,
                const std::string& name);
// The real output channels, bytes of floats for float output; clears the output buffers for the next run.
std::vector<uint8_t> take_output(ConvCase& c);
// The same bytes by a direct convolution in int64 with zero padding and numerics/quantize.h.
std::vector<uint8_t> expected_output(const ConvCase& c);

}  // namespace octet::kernels::testing
