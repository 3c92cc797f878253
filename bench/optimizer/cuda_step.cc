// Time of an optimizer step on a GPU over the parameters of ResNet-50 by the CUDA kernels alone: the norm of the
// gradients (with the wait for it), the update, and both, beside the bandwidth that a copy within the device's memory
// has in the same run. Plain CUDA, no LibTorch, so the program runs where only a driver is. Writes JSON to standard
// output.
//   cuda_step [--runs N]
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "train/cuda/update_kernels_cuda.h"

using namespace octet;
using namespace octet::train::kernels;

namespace {

void check(cudaError_t error) {
  require(error == cudaSuccess, "CUDA: ", cudaGetErrorString(error));
}

std::vector<int64_t> resnet50_sizes() {
  std::vector<int64_t> sizes;
  const auto convolution = [&](int64_t inputs, int64_t outputs, int64_t window) {
    for (const int64_t n : {inputs * outputs * window * window, outputs, outputs}) sizes.push_back(n);  // and its norm
  };
  convolution(3, 64, 7);
  int64_t channels = 64;
  constexpr int kBlocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t width = int64_t{64} << stage;
    for (int block = 0; block < kBlocks[stage]; ++block) {
      convolution(channels, width, 1);
      convolution(width, width, 3);
      convolution(width, 4 * width, 1);
      if (block == 0) convolution(channels, 4 * width, 1);
      channels = 4 * width;
    }
  }
  for (const int64_t n : {channels * 1000, int64_t{1000}}) sizes.push_back(n);
  return sizes;
}

struct Case {
  const char* name;
  UpdateKind kind;
  bool masters;                   // fp16 gradients and weights over float32 masters; else all is float32
  int64_t update_bytes() const {  // of an element, each array read and written as often as the kernels do
    const int64_t gradient = masters ? 2 : 4, weight = 8, moment = 8, copy = masters ? 2 : 0;
    if (kind == UpdateKind::kSgd) return gradient + weight + moment + copy;
    if (kind == UpdateKind::kAdam) return gradient + weight + 2 * moment + copy;
    return gradient + weight / 2 + 2 * moment + weight + moment + copy;  // the moments are read again
  }
  int64_t norm_bytes() const { return masters ? 2 : 4; }
};

// The arrays of a whole network. Several of them in turns, so that none is found in the cache.
class State {
 public:
  State(const Case& c, const std::vector<int64_t>& sizes) {
    std::vector<size_t> starts;
    size_t bytes = 0;
    const auto place = [&](int64_t n, size_t size) {
      const size_t start = bytes;
      bytes += (static_cast<size_t>(n) * size + 511) / 512 * 512;  // as LibTorch's allocator
      return start;
    };
    for (const int64_t n : sizes) {
      starts.push_back(place(n, c.masters ? 2 : 4));
      for (int array = 0; array < 3; ++array) place(n, 4);
      if (c.masters) place(n, 2);
    }
    check(cudaMalloc(&memory_, bytes));
    // Random, but no infinities, and nothing negative, as second moments must be: float32 of 2^-15 .. 2^0 in which fp16
    // sees numbers of ordinary size, too.
    std::vector<uint32_t> random(1 << 20);
    std::mt19937 generator(1);
    for (uint32_t& x : random) x = (static_cast<uint32_t>(generator()) & 0x07ff3fffu) | 0x38000000u;
    for (size_t at = 0; at < bytes; at += random.size() * 4)
      check(cudaMemcpy(static_cast<char*>(memory_) + at, random.data(), std::min(bytes - at, random.size() * 4),
                       cudaMemcpyHostToDevice));
    UpdateRule rule;
    rule.kind = c.kind;
    rule.gradient_factor = 1.0f / 65536;
    rule.rate = 1e-3f;
    rule.decay = 0.01f;
    rule.momentum = 0.9f;
    rule.beta2 = 0.999f;
    rule.gain1 = 0.1f;
    rule.gain2 = 0.001f;
    rule.eps = 1e-8f;
    bytes = 0;
    for (const int64_t n : sizes) {
      const auto next = [&](size_t size) { return static_cast<void*>(static_cast<char*>(memory_) + place(n, size)); };
      UpdateArrays a;
      a.gradient = {next(c.masters ? 2 : 4), c.masters ? Storage::kFloat16 : Storage::kFloat32};
      a.weight = {next(4), Storage::kFloat32};
      a.first = static_cast<float*>(next(4));
      void* second = next(4);
      if (c.kind != UpdateKind::kSgd) a.second = static_cast<float*>(second);
      if (c.masters) a.copy = {next(2), Storage::kFloat16};
      tensors.push_back({a, rule, n});
    }
    check(cudaMalloc(&workspace, cuda::workspace_bytes(tensors)));
  }
  ~State() {
    cudaFree(memory_);
    cudaFree(workspace);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::vector<cuda::DeviceUpdate> tensors;
  void* workspace = nullptr;

 private:
  void* memory_ = nullptr;
};

struct Times {
  double min, median;
};

// Milliseconds by the device's clock, of run(i), i = 0, 1 ...
Times measure(int runs, const std::function<void(int)>& run) {
  cudaEvent_t start, stop;
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&stop));
  std::vector<double> times;
  for (int i = -3; i < runs; ++i) {
    check(cudaEventRecord(start, nullptr));
    run(i + 3);
    check(cudaEventRecord(stop, nullptr));
    check(cudaEventSynchronize(stop));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start, stop));
    if (i >= 0) times.push_back(static_cast<double>(ms));
  }
  check(cudaEventDestroy(start));
  check(cudaEventDestroy(stop));
  std::sort(times.begin(), times.end());
  return {times[0], times[times.size() / 2]};
}

// GB/s of a copy within the device, read and written bytes counted.
double copy_bandwidth(int runs) {
  constexpr size_t kBytes = size_t{1} << 30;
  void *from, *to;
  check(cudaMalloc(&from, kBytes));
  check(cudaMalloc(&to, kBytes));
  check(cudaMemset(from, 0x3b, kBytes));
  const Times t =
      measure(runs, [&](int) { check(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, nullptr)); });
  check(cudaFree(from));
  check(cudaFree(to));
  return 2.0 * kBytes / t.median * 1e-6;
}

void report(const char* part, const Times& t, double bytes, double bandwidth) {
  const double rate = bytes / t.median * 1e-6;
  std::printf("\"%s\": {\"min_ms\": %.4f, \"median_ms\": %.4f, \"gb_s\": %.0f, \"of_bandwidth\": %.3f}", part, t.min,
              t.median, rate, rate / bandwidth);
}

}  // namespace

int main(int argc, char** argv) try {
  int runs = 50;
  for (int i = 1; i + 1 < argc; i += 2)
    if (std::strcmp(argv[i], "--runs") == 0) runs = std::max(1, std::atoi(argv[i + 1]));
  require(cuda::runs_on(0), "there is no CUDA device 0 that the kernels were built for");
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0));
  const std::vector<int64_t> sizes = resnet50_sizes();
  int64_t elements = 0;
  for (const int64_t n : sizes) elements += n;
  const double bandwidth = copy_bandwidth(runs);
  std::printf(
      "{\"device\": \"%s\", \"network\": \"resnet50\", \"tensors\": %zu, \"elements\": %lld, \"runs\": %d, "
      "\"copy_gb_s\": %.0f, \"steps\": [\n",
      device.name, sizes.size(), static_cast<long long>(elements), runs, bandwidth);
  const Case cases[] = {
      {"adamw, fp16 with masters", UpdateKind::kAdam, true}, {"adamw, fp32", UpdateKind::kAdam, false},
      {"sgd, fp16 with masters", UpdateKind::kSgd, true},    {"sgd, fp32", UpdateKind::kSgd, false},
      {"lamb, fp16 with masters", UpdateKind::kLamb, true},  {"lamb, fp32", UpdateKind::kLamb, false}};
  for (const Case& c : cases) {
    const State states[] = {{c, sizes}, {c, sizes}, {c, sizes}};
    const auto norm = [&](int i) {
      const State& s = states[i % 3];
      const double sum = cuda::square_sum(s.tensors, s.workspace, {}, 1.0f / 65536);
      require(sum > 0 && sum < 1e30, "the sum of the squares is ", sum);
    };
    const auto update = [&](int i) { cuda::update(states[i % 3].tensors, states[i % 3].workspace, {}); };
    const double count = static_cast<double>(elements), norm_bytes = count * static_cast<double>(c.norm_bytes()),
                 update_bytes = count * static_cast<double>(c.update_bytes());
    std::printf("  {\"step\": \"%s\", ", c.name);
    report("norm", measure(runs, norm), norm_bytes, bandwidth);
    std::printf(", ");
    report("update", measure(runs, update), update_bytes, bandwidth);
    std::printf(", ");
    report("whole", measure(runs, [&](int i) { norm(i), update(i); }), norm_bytes + update_bytes, bandwidth);
    std::printf("}%s\n", &c == std::end(cases) - 1 ? "" : ",");
    std::fflush(stdout);
  }
  std::printf("]}\n");
  return 0;
} catch (const UserError& error) {
  std::fprintf(stderr, "cuda_step: %s\n", error.what());
  return static_cast<int>(error.code());
}
