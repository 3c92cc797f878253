#include "train/cuda_driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"

namespace octet::train {
namespace {

// CUresult of cuda.h, whose numbers are part of the driver's interface.
constexpr int kSuccess = 0, kStubLibrary = 34, kNoDevice = 100, kSystemDriverMismatch = 803,
              kCompatibilityNotSupported = 804;

template <typename Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

}  // namespace

std::string cuda_driver_problem(int result, int devices, const char* visible, const std::string& name) {
  const bool hidden = visible != nullptr;
  switch (result) {
    case kSuccess:
      if (devices > 0) return "";
      [[fallthrough]];
    case kNoDevice:
      if (hidden)
        return str("CUDA_VISIBLE_DEVICES=", visible, " shows none of this machine's GPUs; unset it or name one, as 0");
      return "the NVIDIA driver is there, but it finds no GPU (nvidia-smi shows what it sees; a container needs "
             "--gpus)";
    case kStubLibrary:
      return "libcuda.so.1 is the stub of the CUDA toolkit, not the driver; take its folder out of LD_LIBRARY_PATH";
    case kSystemDriverMismatch:
      return "the NVIDIA driver was updated and the old one is still loaded in the kernel; restart the machine";
    case kCompatibilityNotSupported:
      return "the NVIDIA driver is too old for the CUDA libraries beside it; update it";
    default:
      return str("the NVIDIA driver cannot be started: ", name, " (error ", result, ")");
  }
}

std::string cuda_driver_problem() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) {
    std::error_code ignored;
    if (std::filesystem::exists("/proc/driver/nvidia/version", ignored))
      return "the kernel has the NVIDIA driver, but its library libcuda.so.1 is not found; a container gets it with "
             "--gpus (NVIDIA Container Toolkit)";
    return "there is no NVIDIA driver on this machine (libcuda.so.1)";
  }
  auto* const init = symbol<int(unsigned)>(driver, "cuInit");
  auto* const count = symbol<int(int*)>(driver, "cuDeviceGetCount");
  auto* const describe = symbol<int(int, const char**)>(driver, "cuGetErrorString");
  if (!init || !count) return "libcuda.so.1 is no NVIDIA driver: it has no cuInit";
  int devices = 0, result = init(0);
  if (result == kSuccess) result = count(&devices);
  const char* name = nullptr;
  if (describe) describe(result, &name);
  return cuda_driver_problem(result, devices, std::getenv("CUDA_VISIBLE_DEVICES"), name ? name : "unknown");
}

std::string cuda_device_problem(const std::string& error) {
  const std::string line = error.substr(0, error.find('\n'));
  if (line.find("busy or unavailable") != std::string::npos)
    return line + "; another process has it for itself (nvidia-smi names it, and the compute mode)";
  if (line.find("out of memory") != std::string::npos)
    return line + "; other processes have taken its memory (nvidia-smi names them)";
  if (line.find("no kernel image") != std::string::npos)
    return line + "; this LibTorch was not built for so old or so new a GPU";
  return line;
}

}  // namespace octet::train
