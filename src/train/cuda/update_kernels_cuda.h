// The kernels of update_kernels.h on CUDA devices: one launch for the tensors of a whole step (two and a small one for
// kLamb). SGD and Adam give the bits that the CPU gives; sums of squares, in float64 there and here, are of another
// order. Every result is the same each time. A build without CUDA has these functions, too, and no device to run them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "train/update_kernels.h"

namespace octet::train::kernels::cuda {

// Where a step is computed, behind what was started there before.
struct Place {
  int device = 0;
  void* stream = nullptr;  // a cudaStream_t; null: the legacy default stream
};

// One tensor of a step. Pointers are to the memory of one device, the same for all tensors of a call; where they are
// multiples of 16 bytes it is fastest.
struct DeviceUpdate {
  UpdateArrays arrays;
  UpdateRule rule;
  int64_t elements = 0;
};

// Whether these kernels run on that device: built for it, with a driver that takes their parameters.
bool runs_on(int device);

// Of device memory that the functions below need for themselves, whatever is in it; multiple of 16 bytes.
size_t workspace_bytes(std::span<const DeviceUpdate> tensors);

// The square of the joint L2 norm of the gradients times `factor`; not finite where one of them is not. Waits for it.
double square_sum(std::span<const DeviceUpdate> tensors, void* workspace, const Place& place, float factor);

// One step of each, by its rule. Does not wait.
void update(std::span<const DeviceUpdate> tensors, void* workspace, const Place& place);

}  // namespace octet::train::kernels::cuda
