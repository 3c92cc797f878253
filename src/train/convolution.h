// A convolution of tensors as the graph means it, by the fastest way that LibTorch has on the CPU.
#pragma once
#include <cstdint>

#include "ir/infer.h"

namespace at {
class Tensor;
}

namespace octet::train {

// `x` [images, channels, pixels of each axis ...], `weight` [outputs, channels / group, taps of each axis ...], `bias`
// [outputs] or undefined. Padding of `geometry` may differ at both ends, and may be negative: then pixels are cut off.
at::Tensor convolution(at::Tensor x, at::Tensor weight, const at::Tensor& bias, ir::WindowGeometry geometry,
                       int64_t group);

}  // namespace octet::train
