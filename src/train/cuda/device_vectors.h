// Device code: four elements of an array at a time, as they lie and as floats, and sums over a block.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "train/cuda/tensor_table.h"

namespace octet::train::kernels::cuda {
namespace {

struct Vector {
  float at[kVector];
};

// The `n` elements from `data` on (0..4; the others read as 0): float32 fill the result, low types its first half.
// `wide`: four of them are aligned.
__device__ __forceinline__ uint4 fetch(const void* data, Storage type, bool wide, int n) {
  uint4 bits = {0, 0, 0, 0};
  if (type == Storage::kFloat32) {
    const uint32_t* from = static_cast<const uint32_t*>(data);
    if (wide && n == kVector) return *reinterpret_cast<const uint4*>(from);
    if (n > 0) bits.x = from[0];
    if (n > 1) bits.y = from[1];
    if (n > 2) bits.z = from[2];
    if (n > 3) bits.w = from[3];
  } else {
    const uint16_t* from = static_cast<const uint16_t*>(data);
    if (wide && n == kVector) {
      const uint2 both = *reinterpret_cast<const uint2*>(from);
      return {both.x, both.y, 0, 0};
    }
    if (n > 0) bits.x = from[0];
    if (n > 1) bits.x |= static_cast<uint32_t>(from[1]) << 16;
    if (n > 2) bits.y = from[2];
    if (n > 3) bits.y |= static_cast<uint32_t>(from[3]) << 16;
  }
  return bits;
}

__device__ __forceinline__ float half_bits_to_float(uint32_t bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

__device__ __forceinline__ Vector to_floats(const uint4& bits, Storage type) {
  switch (type) {
    case Storage::kFloat32:
      return {__uint_as_float(bits.x), __uint_as_float(bits.y), __uint_as_float(bits.z), __uint_as_float(bits.w)};
    case Storage::kBFloat16:
      return {__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xffff0000u), __uint_as_float(bits.y << 16),
              __uint_as_float(bits.y & 0xffff0000u)};
    default:
      return {half_bits_to_float(bits.x & 0xffffu), half_bits_to_float(bits.x >> 16),
              half_bits_to_float(bits.y & 0xffffu), half_bits_to_float(bits.y >> 16)};
  }
}

// To nearest even.
__device__ __forceinline__ uint32_t low_bits(float x, Storage type) {
  return type == Storage::kBFloat16 ? __bfloat16_as_ushort(__float2bfloat16_rn(x))
                                    : __half_as_ushort(__float2half_rn(x));
}

// Stores the first `n` of them, rounded where the type is low.
__device__ __forceinline__ void put(void* data, Storage type, bool wide, int n, const Vector& v) {
  if (type == Storage::kFloat32) {
    float* to = static_cast<float*>(data);
    if (wide && n == kVector) {
      *reinterpret_cast<float4*>(to) = {v.at[0], v.at[1], v.at[2], v.at[3]};
      return;
    }
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      if (i < n) to[i] = v.at[i];
  } else {
    uint16_t* to = static_cast<uint16_t*>(data);
    uint32_t bits[kVector];
#pragma unroll
    for (int i = 0; i < kVector; ++i) bits[i] = low_bits(v.at[i], type);
    if (wide && n == kVector) {
      *reinterpret_cast<uint2*>(to) = {bits[0] | bits[1] << 16, bits[2] | bits[3] << 16};
      return;
    }
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      if (i < n) to[i] = static_cast<uint16_t>(bits[i]);
  }
}

// `data` moved on by so many elements.
__device__ __forceinline__ const void* advance(const void* data, Storage type, int64_t elements) {
  return static_cast<const char*>(data) + elements * (type == Storage::kFloat32 ? 4 : 2);
}
__device__ __forceinline__ void* advance(void* data, Storage type, int64_t elements) {
  return static_cast<char*>(data) + elements * (type == Storage::kFloat32 ? 4 : 2);
}

__device__ __forceinline__ double warp_sum(double x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_down_sync(0xffffffffu, x, offset);
  return x;  // in the first lane
}

// Of all threads of the block, always in the same order; in the first one. May be called again.
__device__ __forceinline__ double block_sum(double x) {
  __shared__ double parts[kThreads / 32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  x = warp_sum(x);
  __syncthreads();  // the last call has read `parts`
  if (lane == 0) parts[warp] = x;
  __syncthreads();
  if (warp == 0) x = warp_sum(lane < kThreads / 32 ? parts[lane] : 0.0);
  return x;
}

}  // namespace
}  // namespace octet::train::kernels::cuda
