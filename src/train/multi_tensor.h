// One step over many tensors at a time by kernels that touch every element once: on the CPU (update_kernels.h) all
// tensors are shared between the threads, and results do not depend on their number; on CUDA devices
// (cuda/update_kernels_cuda.h) one launch does all. On other devices, and in float64, ATen's operators do it.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>

#include "train/update_kernels.h"

namespace octet::train {

// Tensors of one shape with the same strides, dense: see like().
struct UpdateTensor {
  at::Tensor gradient;       // float32, bf16 or fp16 (or float64, where the weight is)
  at::Tensor weight;         // the same types
  at::Tensor copy;           // of a low type: gets the new weight; undefined: none
  at::Tensor first, second;  // float32 (float64 where the weight is); undefined where the rule has none
  kernels::UpdateRule rule;
};

// The square of the joint L2 norm of the gradients times `factor`; not finite where one of them is not.
double square_sum(std::span<const UpdateTensor> tensors, double factor);

// One step of each, by its rule.
void update(std::span<const UpdateTensor> tensors);

// The same by ATen's operators, on any device and in float64, too: by its fused optimizers where these know the rule.
void update_by_operators(std::span<const UpdateTensor> tensors);

}  // namespace octet::train
