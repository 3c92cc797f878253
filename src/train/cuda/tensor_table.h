// The tensors of a launch, handed over as a parameter of the kernel: nothing is copied to the device before, and
// nothing has to outlive the launch.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "train/cuda/update_kernels_cuda.h"

namespace octet::train::kernels::cuda {

constexpr int kThreads = 256;  // of a block
constexpr int kVector = 4;     // elements that a thread reads at once: 16 bytes of float32
// Elements of a tensor that a block does; a sum reads so little of each that it takes more.
constexpr int64_t kChunk = 4096, kSumChunk = 16384;

// The bits of TensorRow::wide: arrays whose vectors are aligned.
enum : uint8_t { kWideGradient = 1, kWideWeight = 2, kWideCopy = 4, kWideFirst = 8, kWideSecond = 16 };

struct TensorRow {
  const void* gradient;
  void* weight;
  void* copy;
  float* first;
  float* second;
  int64_t elements;
  float rate, decay;
  int32_t first_block;  // of the launch that works on it
  Storage gradient_type, weight_type, copy_type;
  uint8_t wide;
};
static_assert(sizeof(TensorRow) == 64);

// Parameters of a kernel take 4 KB, since CUDA 12.1 nearly 32.
constexpr bool kLargeParameters = CUDART_VERSION >= 12010;
constexpr int kRows = kLargeParameters ? 500 : 60;

struct TensorTable {
  TensorRow rows[kRows];
  UpdateRule rule;  // of all of them, but for rate and decay
  int32_t count;
  int32_t blocks;
};
static_assert(sizeof(TensorTable) <= (kLargeParameters ? 32764 : 4096) - 32, "there are further parameters");

// A table among those that a list of tensors takes, and how much of it came before.
struct TableLaunch {
  const TensorTable& table;
  int64_t blocks_before, rows_before;
};

inline int64_t blocks_of(int64_t elements, int64_t chunk) {
  return (elements + chunk - 1) / chunk;
}

inline bool is_wide(const void* data, Storage type) {
  const uintptr_t bytes = kVector * (type == Storage::kFloat32 ? 4 : 2);
  return reinterpret_cast<uintptr_t>(data) % bytes == 0;
}

inline TensorRow row_of(const DeviceUpdate& tensor, int64_t first_block) {
  const UpdateArrays& a = tensor.arrays;
  const auto bit = [](bool wide, uint8_t bit) { return wide ? bit : uint8_t{0}; };
  TensorRow row = {};
  row.gradient = a.gradient.data;
  row.weight = a.weight.data;
  row.copy = a.copy.data;
  row.first = a.first;
  row.second = a.second;
  row.elements = tensor.elements;
  row.rate = tensor.rule.rate;
  row.decay = tensor.rule.decay;
  row.first_block = static_cast<int32_t>(first_block);
  row.gradient_type = a.gradient.type;
  row.weight_type = a.weight.type;
  row.copy_type = a.copy.type;
  row.wide = bit(is_wide(a.gradient.data, a.gradient.type), kWideGradient) |
             bit(is_wide(a.weight.data, a.weight.type), kWideWeight) |
             bit(is_wide(a.copy.data, a.copy.type), kWideCopy) | bit(is_wide(a.first, Storage::kFloat32), kWideFirst) |
             bit(is_wide(a.second, Storage::kFloat32), kWideSecond);
  return row;
}

// Calls launch(TableLaunch) for as many tables as tensors of one rule take, those without elements left out.
template <typename F>
void for_tables(std::span<const DeviceUpdate> tensors, int64_t chunk, F launch) {
  TensorTable table = {};
  int64_t blocks_before = 0, rows_before = 0;
  const auto flush = [&] {
    if (table.count == 0) return;
    launch(TableLaunch{table, blocks_before, rows_before});
    blocks_before += table.blocks;
    rows_before += table.count;
    table.count = table.blocks = 0;
  };
  for (const DeviceUpdate& tensor : tensors) {
    if (tensor.elements == 0) continue;
    if (table.count == kRows) flush();
    if (table.count == 0) table.rule = tensor.rule;
    table.rows[table.count] = row_of(tensor, table.blocks);
    ++table.count;
    table.blocks += static_cast<int32_t>(blocks_of(tensor.elements, chunk));
  }
  flush();
}

}  // namespace octet::train::kernels::cuda
