// Everything that may stand between two convolutions as one autograd node: scale and offset, or batch norm; residual
// addition; clamp; fake-quantization. One pass over the data forward and one or two backward, one mask bit an element.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>

#include "train/ops_common.h"

namespace octet::train {

struct PointwiseOptions {
  // y = x * scale_x + offset first, per channel (axis 1) or with one scale; undefined: y = x.
  at::Tensor scale_x;  // float32, no gradient
  at::Tensor offset;   // float32, a parameter perhaps
  // Then batch norm, if gamma is defined.
  at::Tensor gamma, beta;                     // float32, parameters perhaps
  at::Tensor running_mean, running_variance;  // float32; updated when batch_statistics
  bool batch_statistics = false;
  double epsilon = 1e-5, momentum = 0.1;  // momentum: weight of the new value
  Communicator* ranks = nullptr;          // batch statistics are those of all ranks; null: of this one
  // Then + residual * residual_scale.
  at::Tensor residual;  // type and shape of x
  float residual_scale = 1;
  // Then clamp. The gradient passes strictly inside.
  bool clamp = false;
  float lower = -std::numeric_limits<float>::infinity(), upper = std::numeric_limits<float>::infinity();
  // Then fake-quantize, to numbers or to codes.
  bool quantize = false, codes = false;
  float scale = 1, low = 0, high = 0;  // low, high: bounds of code - zero_point
};

// Whether there are kernels for it: float32 and bf16 on the CPU.
bool has_pointwise(at::Device device, at::ScalarType type);

// x: such a tensor with at least one element; with per-channel operands rank >= 2. The result has its type, in
// NHWC memory for rank 4. With a scale of one element and no other of them any rank.
at::Tensor pointwise(const at::Tensor& x, const PointwiseOptions& options);

// The number in a slot of form kPending, in the compute type.
at::Tensor finish_pending(const Run& run, const Slot& slot);

// A chain of nodes that becomes one call of pointwise().
struct Chain {
  const ir::Node* batch_norm = nullptr;
  const ir::Node* add = nullptr;
  const ir::Node* clamp = nullptr;     // Relu, or Clip with constant bounds
  const ir::Node* quantize = nullptr;  // FakeQuantize: one scale, frozen
  const ir::Node* first = nullptr;
  const ir::Node* last = nullptr;
  int length = 0;
};

// Slots that a chain reads and writes; -1: absent.
struct ChainWiring {
  int x = -1, residual = -1, gamma = -1, beta = -1, mean = -1, variance = -1, scale = -1, out = -1;
};
StepFunction compile_chain(const Chain& chain, const ChainWiring& wiring, at::Tensor zero_point);

}  // namespace octet::train
