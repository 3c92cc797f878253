#include "train/cuda/update_kernels_cuda.h"

#include <cuda_runtime.h>

#include <map>
#include <mutex>

#include "base/error.h"
#include "train/cuda/device_vectors.h"

namespace octet::train::kernels {
namespace {

__device__ __forceinline__ float square_root(float x) {
  return sqrtf(x);
}

}  // namespace
}  // namespace octet::train::kernels

#include "train/update_formulas.h"  // behind the root that it uses

namespace octet::train::kernels::cuda {
namespace {

// Vectors that a thread reads before it computes anything.
constexpr int kAtOnce = 2;

// The steps: what becomes of an element. Returns the new weight.
struct Sgd {
  static constexpr bool kGradient = true, kSecond = false, kMovesMoments = true, kMovesWeight = true;
  bool momentum;
  __device__ float operator()(const UpdateRule& rule, float g, float w, Moments<float>& m) const {
    return sgd_step(rule, g, w, momentum ? &m.first : nullptr);
  }
};

struct Adam {
  static constexpr bool kGradient = true, kSecond = true, kMovesMoments = true, kMovesWeight = true;
  __device__ float operator()(const UpdateRule& rule, float g, float w, Moments<float>& m) const {
    return adam_step(rule, g, w, m);
  }
};

struct LambFirst {
  static constexpr bool kGradient = true, kSecond = true, kMovesMoments = true, kMovesWeight = false;
  LambNorms norms = {};
  __device__ float operator()(const UpdateRule& rule, float g, float w, Moments<float>& m) {
    follow(rule, g, m);
    const double weight = w, update = lamb_direction(rule, m, w);
    norms.weight += weight * weight;
    norms.update += update * update;
    return w;
  }
};

struct LambSecond {
  static constexpr bool kGradient = false, kSecond = true, kMovesMoments = false, kMovesWeight = true;
  float rate;
  __device__ float operator()(const UpdateRule& rule, float, float w, Moments<float>& m) const {
    return w - lamb_direction(rule, m, w) * rate;
  }
};

// What block `block` of a launch works on.
struct Share {
  const TensorRow& row;
  int index;
  int64_t begin, end;
};

__device__ __forceinline__ Share share_of(const TensorTable& table, int block, int64_t chunk) {
  int first = 0, last = table.count;  // the row is in first .. last - 1
  while (last - first > 1) {
    const int middle = (first + last) / 2;
    (table.rows[middle].first_block <= block ? first : last) = middle;
  }
  const TensorRow& row = table.rows[first];
  const int64_t begin = (block - row.first_block) * chunk;
  return {row, first, begin, begin + chunk < row.elements ? begin + chunk : row.elements};
}

__device__ __forceinline__ int elements_at(int64_t at, int64_t end) {
  return end - at >= kVector ? kVector : end > at ? static_cast<int>(end - at) : 0;
}

template <typename Step>
__device__ __forceinline__ void for_elements(const TensorTable& table, const Share& share, Step& step) {
  const TensorRow& row = share.row;
  UpdateRule rule = table.rule;
  rule.rate = row.rate;
  rule.decay = row.decay;
  constexpr Storage kFloat = Storage::kFloat32;
  const bool first = Step::kSecond || row.first;
  for (int64_t base = share.begin + threadIdx.x * kVector; base < share.end; base += kAtOnce * kThreads * kVector) {
    uint4 gradient[kAtOnce], weight[kAtOnce], moments[kAtOnce][2];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t at = base + k * kThreads * kVector;
      const int n = elements_at(at, share.end);
      if (Step::kGradient)
        gradient[k] =
            fetch(advance(row.gradient, row.gradient_type, at), row.gradient_type, row.wide & kWideGradient, n);
      weight[k] = fetch(advance(row.weight, row.weight_type, at), row.weight_type, row.wide & kWideWeight, n);
      if (first) moments[k][0] = fetch(row.first + at, kFloat, row.wide & kWideFirst, n);
      if (Step::kSecond) moments[k][1] = fetch(row.second + at, kFloat, row.wide & kWideSecond, n);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t at = base + k * kThreads * kVector;
      const int n = elements_at(at, share.end);
      Vector g = {}, w = to_floats(weight[k], row.weight_type), m = {}, v = {};
      if (Step::kGradient) g = to_floats(gradient[k], row.gradient_type);
      if (first) m = to_floats(moments[k][0], kFloat);
      if (Step::kSecond) v = to_floats(moments[k][1], kFloat);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        if (i >= n) continue;
        Moments<float> both = {m.at[i], v.at[i]};
        w.at[i] = step(rule, g.at[i] * rule.gradient_factor, w.at[i], both);
        m.at[i] = both.first;
        v.at[i] = both.second;
      }
      if (Step::kMovesMoments && first) put(row.first + at, kFloat, row.wide & kWideFirst, n, m);
      if (Step::kMovesMoments && Step::kSecond) put(row.second + at, kFloat, row.wide & kWideSecond, n, v);
      if (!Step::kMovesWeight) continue;
      put(advance(row.weight, row.weight_type, at), row.weight_type, row.wide & kWideWeight, n, w);
      if (row.copy) put(advance(row.copy, row.copy_type, at), row.copy_type, row.wide & kWideCopy, n, w);
    }
  }
}

__global__ void __launch_bounds__(kThreads) sgd(const __grid_constant__ TensorTable table) {
  const Share share = share_of(table, blockIdx.x, kChunk);
  Sgd step = {share.row.first != nullptr};
  for_elements(table, share, step);
}

__global__ void __launch_bounds__(kThreads) adam(const __grid_constant__ TensorTable table) {
  Adam step;
  for_elements(table, share_of(table, blockIdx.x, kChunk), step);
}

// Moments, and the norms of each block.
__global__ void __launch_bounds__(kThreads) lamb_moments(const __grid_constant__ TensorTable table, LambNorms* norms) {
  LambFirst step;
  for_elements(table, share_of(table, blockIdx.x, kChunk), step);
  const double weight = block_sum(step.norms.weight), update = block_sum(step.norms.update);
  if (threadIdx.x == 0) norms[blockIdx.x] = {weight, update};
}

// Block i: the rate of tensor i, of the norms of its blocks.
__global__ void __launch_bounds__(kThreads)
    lamb_rates(const __grid_constant__ TensorTable table, const LambNorms* norms, float* rates) {
  const int index = blockIdx.x, last = index + 1 < table.count ? table.rows[index + 1].first_block : table.blocks;
  LambNorms sum;
  for (int block = table.rows[index].first_block + threadIdx.x; block < last; block += kThreads) {
    sum.weight += norms[block].weight;
    sum.update += norms[block].update;
  }
  const double weight = block_sum(sum.weight), update = block_sum(sum.update);
  if (threadIdx.x != 0) return;
  UpdateRule rule = table.rule;
  rule.rate = table.rows[index].rate;
  rule.decay = table.rows[index].decay;
  rates[index] = lamb_rate(rule, sqrt(weight), sqrt(update));
}

__global__ void __launch_bounds__(kThreads) lamb_update(const __grid_constant__ TensorTable table, const float* rates) {
  const Share share = share_of(table, blockIdx.x, kChunk);
  LambSecond step = {rates[share.index]};
  for_elements(table, share, step);
}

__global__ void __launch_bounds__(kThreads)
    square_sums(const __grid_constant__ TensorTable table, float factor, double* sums) {
  const Share share = share_of(table, blockIdx.x, kSumChunk);
  const TensorRow& row = share.row;
  constexpr int kReads = 2 * kAtOnce;
  double sum = 0;
  for (int64_t base = share.begin + threadIdx.x * kVector; base < share.end; base += kReads * kThreads * kVector) {
    uint4 bits[kReads];
#pragma unroll
    for (int k = 0; k < kReads; ++k) {
      const int64_t at = base + k * kThreads * kVector;
      bits[k] = fetch(advance(row.gradient, row.gradient_type, at), row.gradient_type, row.wide & kWideGradient,
                      elements_at(at, share.end));
    }
#pragma unroll
    for (int k = 0; k < kReads; ++k) {
      const Vector g = to_floats(bits[k], row.gradient_type);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const double scaled = g.at[i] * factor;
        sum += scaled * scaled;
      }
    }
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// By one block.
__global__ void __launch_bounds__(kThreads) total(const double* sums, int64_t count, double* result) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += sums[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *result = sum;
}

void check(cudaError_t error, const Place& place, const char* what) {
  require(error == cudaSuccess, "CUDA device ", place.device, ": ", what, " failed: ", cudaGetErrorString(error), " (",
          cudaGetErrorName(error), "); 'train.device: cpu' needs no GPU");
}

// Makes the device the current one of this thread, and what was it before again.
class DeviceScope {
 public:
  explicit DeviceScope(const Place& place) {
    check(cudaGetDevice(&before_), place, "asking for the current device");
    changed_ = before_ != place.device;
    if (changed_) check(cudaSetDevice(place.device), place, "choosing the device");
  }
  ~DeviceScope() {
    if (changed_) cudaSetDevice(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

// A kernel over all blocks of a table.
template <typename Kernel, typename... Args>
void launch(const Place& place, const char* what, Kernel kernel, int blocks, const Args&... args) {
  kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(place.stream)>>>(args...);
  check(cudaGetLastError(), place, what);
}

void update_lamb(std::span<const DeviceUpdate> tensors, void* workspace, const Place& place) {
  int64_t blocks = 0;
  for (const DeviceUpdate& t : tensors) blocks += blocks_of(t.elements, kChunk);
  LambNorms* norms = static_cast<LambNorms*>(workspace);
  float* rates = reinterpret_cast<float*>(norms + blocks);
  for_tables(tensors, kChunk, [&](const TableLaunch& l) {
    LambNorms* own = norms + l.blocks_before;
    launch(place, "the update of the moments (LAMB)", lamb_moments, l.table.blocks, l.table, own);
    launch(place, "the sum of the norms (LAMB)", lamb_rates, l.table.count, l.table, own, rates + l.rows_before);
    launch(place, "the update of the weights (LAMB)", lamb_update, l.table.blocks, l.table, rates + l.rows_before);
  });
}

// What all tensors of a launch have in common.
UpdateRule shared_part(UpdateRule rule) {
  rule.rate = rule.decay = 0;
  return rule;
}

// Whether the device has a form of the kernels that it can run.
bool is_built_for(int device) {
  int driver = 0, devices = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver < (kLargeParameters ? 12010 : 11000)) return false;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || device < 0 || device >= devices) return false;
  try {
    const DeviceScope scope({.device = device});
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, adam) == cudaSuccess;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

bool runs_on(int device) {
  static std::mutex mutex;
  static std::map<int, bool> known;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace(device, false);
  if (is_new) {
    found->second = is_built_for(device);
    cudaGetLastError();  // what was found out is no error of a later call
  }
  return found->second;
}

size_t workspace_bytes(std::span<const DeviceUpdate> tensors) {
  size_t bytes = 16;  // the sum of the sums
  for (const DeviceUpdate& t : tensors) bytes += static_cast<size_t>(blocks_of(t.elements, kChunk)) * sizeof(LambNorms);
  return bytes + (tensors.size() * sizeof(float) + 15) / 16 * 16;
}

double square_sum(std::span<const DeviceUpdate> tensors, void* workspace, const Place& place, float factor) {
  const char* what = "the norm of the gradients";
  const DeviceScope scope(place);
  double* result = static_cast<double*>(workspace);
  double* sums = result + 2;
  int64_t count = 0;
  for_tables(tensors, kSumChunk, [&](const TableLaunch& l) {
    launch(place, what, square_sums, l.table.blocks, l.table, factor, sums + l.blocks_before);
    count += l.table.blocks;
  });
  launch(place, what, total, 1, sums, count, result);
  double sum = 0;
  const auto stream = static_cast<cudaStream_t>(place.stream);
  check(cudaMemcpyAsync(&sum, result, sizeof sum, cudaMemcpyDeviceToHost, stream), place, what);
  check(cudaStreamSynchronize(stream), place, what);
  return sum;
}

void update(std::span<const DeviceUpdate> tensors, void* workspace, const Place& place) {
  const DeviceScope scope(place);
  for (size_t first = 0, last = 0; first < tensors.size(); first = last) {
    const UpdateRule shared = shared_part(tensors[first].rule);
    while (last < tensors.size() && shared_part(tensors[last].rule) == shared) ++last;
    const std::span<const DeviceUpdate> group = tensors.subspan(first, last - first);
    if (shared.kind == UpdateKind::kLamb) {
      update_lamb(group, workspace, place);
    } else {
      const auto kernel = shared.kind == UpdateKind::kSgd ? sgd : adam;
      for_tables(group, kChunk, [&](const TableLaunch& l) {
        launch(place, "the update of the weights", kernel, l.table.blocks, l.table);
      });
    }
  }
}

}  // namespace octet::train::kernels::cuda
