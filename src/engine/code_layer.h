// One product of a program, computed on codes: a convolution, a transposed one whose windows touch, or rows times a
// matrix, which is a convolution of 1x1 over as many pixels as there are rows.
#pragma once
#include <vector>

#include "base/aligned_memory.h"
#include "dense/code_products.h"
#include "dense/operators.h"
#include "engine/kernels/kernel_table.h"

namespace octet::engine {

class CodeLayer {
 public:
  CodeLayer(const dense::Program& program, const dense::CodeProduct& product, const kernels::KernelTable& table);

  // float32 like the operator's own output: sum of the products of codes * scale of the input * scale of the channel's
  // weights, each rounded on its own, + bias. UserError where `x` does not fit the weights.
  dense::Tensor run(const dense::Tensor& x, dense::Memory& memory, int threads) const;

  int64_t weight_bytes() const { return weights_.size() + prepared_.size(); }

 private:
  enum class Kind { kRows, kConv, kConvTranspose };

  dense::Tensor run_rows(const dense::Tensor& x, dense::Memory& memory, int threads) const;
  dense::Tensor run_images(const dense::Tensor& x, dense::Memory& memory, int threads) const;
  // Of an image of codes; the outputs out_h x out_w are dense with the channels last.
  kernels::ConvArgs convolution(const kernels::QTensor& codes, int64_t out_h, int64_t out_w,
                                const kernels::ConvGeometry& geometry, float* out) const;
  // Takes the way to compute it that is estimated to be the fastest for sizes as they usually come up.
  void choose_tactic();
  // The same where it takes this convolution, too, else the way that takes any.
  const kernels::ConvTactic& tactic_for(const kernels::ConvArgs& args) const;
  // `scratch`: 64-byte aligned, scratch_bytes() for each thread.
  int64_t scratch_bytes(const kernels::ConvArgs& args) const;
  void convolve(const kernels::ConvArgs& args, std::byte* scratch, int threads) const;

  Kind kind_ = Kind::kRows;
  dense::Operation operation_;  // for its attributes
  dense::CodeParams params_;
  int32_t zero_point_ = 0;  // of codes as the kernels have them
  kernels::ConvGeometry geometry_;
  dense::Shape kernel_;
  const kernels::KernelTable& table_;
  AlignedMemory weights_, prepared_;  // packed; in the order of the tactic, where it has one
  const kernels::ConvTactic* tactic_ = nullptr;
  std::vector<int32_t> acc_init_;
  std::vector<float> multiplier_, bias_;  // of each output channel; bias_ may be empty
  kernels::ChannelLimits limits_;
};

}  // namespace octet::engine
