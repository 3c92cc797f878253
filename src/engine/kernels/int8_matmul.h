// Products of two matrices of codes, both made in the run: the two of attention.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/kernels/tensor.h"

namespace octet::kernels {

// Sums of so many products of two codes minus their zero points fit an int32.
inline constexpr int64_t kMaxMatMulDepth = 32768;

// Rows of codes one behind the other, `pitch` bytes apart; kReadSlack bytes follow the last.
struct CodeMatrix {
  const uint8_t* data = nullptr;
  int64_t pitch = 0;
  int32_t zero_point = 0;  // 0..255
};

// out = float(sum over k of (a - zero_point) * (b - zero_point)) * scale, for each of `batches` pairs of matrices: the
// sums are exact, then two roundings.
struct Int8MatMulArgs {
  CodeMatrix a;  // batches * m rows of k
  CodeMatrix b;  // batches * k rows of n, or, b_transposed, batches * n rows of k
  bool b_transposed = false;
  float scale = 1;               // that of a times that of b, in float32
  float* out = nullptr;          // batches * m rows of n without gaps
  int64_t m = 0, n = 0, k = 0;   // k <= kMaxMatMulDepth
  std::byte* scratch = nullptr;  // int8_matmul_scratch(n, k) bytes, 64-byte aligned
};
// Rows counted over batches * m.
using Int8MatMulFunction = void(const Int8MatMulArgs& args, Range rows);

// Rows of a that a vector kernel takes at a time, and columns of b that it packs together.
inline constexpr int64_t kMatMulRows = 4, kMatMulColumns = 16;
// For kernels that hold words: one matrix b in columns of kMatMulColumns, and kMatMulRows rows of a.
int64_t int8_matmul_scratch(int64_t n, int64_t k);

}  // namespace octet::kernels
