// What the driver of NVIDIA's GPUs says before LibTorch is asked: LibTorch says "no CUDA device" to everything.
#pragma once
#include <string>

namespace octet::train {

// Why no GPU can be used, with what to do; empty: the driver is there and shows a device. Loads libcuda.so.1; never
// throws.
std::string cuda_driver_problem();

// The same of what cuInit (CUresult) and cuDeviceGetCount answered; `visible`: CUDA_VISIBLE_DEVICES, or null; `name`:
// what the driver calls the error.
std::string cuda_driver_problem(int result, int devices, const char* visible, const std::string& name);

// The same of an error of the CUDA runtime at the first use of a device: of its first line, with what to do where that
// is known.
std::string cuda_device_problem(const std::string& error);

}  // namespace octet::train
