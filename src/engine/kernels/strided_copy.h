// Copies between tensors whose elements lie in different orders.
#pragma once
#include <cstdint>

#include "engine/kernels/float_ops.h"

namespace octet::kernels {

// The same copy as the kernel does it fastest: dimensions of one element are gone, neighbors that both tensors walk as
// one are one, the innermost is one that both have without gaps, or else the target, with the one that the source has
// so next to it; and there are rows enough for several threads. The target must not have two elements in one place.
StridedCopyArgs simplified(const StridedCopyArgs& args);

// The product of all dimensions but the innermost: the kernel's work.
int64_t row_count(const StridedCopyArgs& args);

}  // namespace octet::kernels
