// Process-wide settings of LibTorch, in one place.
#pragma once
#include <string>

namespace octet::train {

// Sets LibTorch's threads to available_cpus() (or to OCTET_THREADS) the first time it is called; every later call does
// nothing. LibTorch's own default is 1 under torchrun and ignores container limits.
void initialize_torch();
// Threads that LibTorch's kernels use from now on. 0: available_cpus().
void set_torch_threads(int threads);
// How many they are.
int torch_threads();

// Whether a CUDA device can be used. Loads libtorch_cuda.so lazily on the first call; never throws.
bool cuda_available();
// Why none can; empty: one can.
const std::string& cuda_problem();
// How many there are.
int cuda_devices();
// UserError, with the reason, unless `device` ("cpu", "cuda", "cuda:1") can be used; loads what it needs.
void require_device(const std::string& device);

}  // namespace octet::train
