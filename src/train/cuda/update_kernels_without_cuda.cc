// In place of update_kernels_cuda.cu where Octet is built without CUDA.
#include "base/error.h"
#include "train/cuda/update_kernels_cuda.h"

namespace octet::train::kernels::cuda {

bool runs_on(int device) {
  return false;
}

size_t workspace_bytes(std::span<const DeviceUpdate> tensors) {
  return 0;
}

double square_sum(std::span<const DeviceUpdate> tensors, void* workspace, const Place& place, float factor) {
  OCTET_CHECK(false, "built without CUDA");
}

void update(std::span<const DeviceUpdate> tensors, void* workspace, const Place& place) {
  OCTET_CHECK(false, "built without CUDA");
}

}  // namespace octet::train::kernels::cuda
