#include "engine/kernels/int8_matmul.h"

#include <algorithm>

#include "engine/kernels/scalar/scalar_kernels.h"

namespace octet::kernels {
namespace {

int64_t whole(int64_t count, int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

void int8_matmul(const Int8MatMulArgs& args, Range rows) {
  const CodeMatrix &a = args.a, &b = args.b;
  auto* const sums = reinterpret_cast<int32_t*>(args.scratch);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const uint8_t* const left = a.data + row * a.pitch;
    const uint8_t* const right = b.data + row / args.m * (args.b_transposed ? args.n : args.k) * b.pitch;
    std::fill_n(sums, args.n, 0);
    if (args.b_transposed) {
      for (int64_t j = 0; j < args.n; ++j)
        for (int64_t i = 0; i < args.k; ++i)
          sums[j] += (left[i] - a.zero_point) * (right[j * b.pitch + i] - b.zero_point);
    } else {
      for (int64_t i = 0; i < args.k; ++i) {
        const int32_t factor = left[i] - a.zero_point;
        for (int64_t j = 0; j < args.n; ++j) sums[j] += factor * (right[i * b.pitch + j] - b.zero_point);
      }
    }
    float* const out = args.out + row * args.n;
    for (int64_t j = 0; j < args.n; ++j) out[j] = static_cast<float>(sums[j]) * args.scale;
  }
}

}  // namespace

int64_t int8_matmul_scratch(int64_t n, int64_t k) {
  const int64_t pairs = (k + 1) / 2, words = whole(k, kChannelBlock) + kChannelBlock;
  return pairs * whole(n, kMatMulColumns) * 4 + whole(kMatMulRows * words * 2, 64);
}

void add_scalar_int8_matmul(KernelTable& table) {
  table.int8_matmul = {int8_matmul};
}

}  // namespace octet::kernels
