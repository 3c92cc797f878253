#include "train/torch_runtime.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/empty.h>
#include <dlfcn.h>
#include <malloc.h>

#include <cstdlib>
#include <mutex>

#include "base/cpu_features.h"
#include "base/error.h"
#include "train/cuda_driver.h"

namespace octet::train {

void initialize_torch() {
  static std::once_flag once;
  std::call_once(once, [] {
    // A training step allocates and frees the same large blocks again and again. Without these settings glibc maps and
    // unmaps each, and the kernel clears its pages every time: 10 to 30% of a step.
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
    mallopt(M_TOP_PAD, 64 << 20);
    // LibTorch reads this once, at its first allocation: huge pages for large tensors.
    setenv("THP_MEM_ALLOC_ENABLE", "1", 0);
    set_torch_threads(0);
  });
}

void set_torch_threads(int threads) {
  if (threads <= 0) {
    const char* wanted = std::getenv("OCTET_THREADS");
    threads = wanted ? std::atoi(wanted) : 0;
  }
  at::set_num_threads(threads > 0 ? threads : available_cpus());
}

int torch_threads() {
  return at::get_num_threads();
}

// The library registers its kernels when it is loaded.
const std::string& cuda_problem() {
  static const std::string problem = [] {
    if (std::string problem = cuda_driver_problem(); !problem.empty()) return problem;
    if (!dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL)) {
      const char* reason = dlerror();
      return str("LibTorch's part for CUDA cannot be loaded (", reason ? reason : "libtorch_cuda.so",
                 "); install the CUDA build of LibTorch and its libraries");
    }
    try {
      at::Context& context = at::globalContext();
      if (!context.hasCUDA())
        return std::string(
            "the driver shows a device, but LibTorch's CUDA runtime finds none (is the driver too old?)");
      context.lazyInitDevice(at::kCUDA);
      // Where fp32 is asked for, it is float32: by default cuDNN rounds what it multiplies to TF32, with 11 digits. And
      // a run that is repeated is to give the same bytes.
      context.setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV, at::Float32Precision::IEEE);
      context.setDeterministicCuDNN(true);
    } catch (const std::exception& error) {
      return "CUDA cannot be initialized: " + cuda_device_problem(error.what());
    }
    return std::string();
  }();
  return problem;
}

bool cuda_available() {
  return cuda_problem().empty();
}

int cuda_devices() {
  return cuda_available() ? at::detail::getCUDAHooks().deviceCount() : 0;
}

void require_device(const std::string& device) {
  const bool cuda = device == "cuda" || device.rfind("cuda:", 0) == 0;
  if (device == "cpu") return;
  if (!cuda || (device.size() > 5 && device.find_first_not_of("0123456789", 5) != std::string::npos) ||
      device == "cuda:")
    fail_usage("device '", device, "' is not known; use cpu, cuda or cuda:N");
  require(cuda_available(), "device '", device, "' cannot be used: ", cuda_problem(), "; use device cpu");
  if (device.size() > 5)
    require(device.size() < 10 && std::stoi(device.substr(5)) < cuda_devices(), "device '", device,
            "' cannot be used: this machine has ", cuda_devices(),
            cuda_devices() == 1 ? " CUDA device" : " CUDA devices");
  try {
    at::empty({1}, at::TensorOptions().device(at::Device(device)));  // opens it
  } catch (const std::exception& error) {
    fail("device '", device, "' cannot be used: ", cuda_device_problem(error.what()), "; or use device cpu");
  }
}

}  // namespace octet::train
