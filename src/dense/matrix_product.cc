#include "dense/matrix_product.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/parallel.h"

// GCC compiles the loops for wider vectors, too, and takes those of the machine when the program starts.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define OCTET_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define OCTET_WIDE
#endif

namespace octet::dense {
namespace {

constexpr int64_t kRows = 4, kColumns = 32, kDepth = 512;

// c[rows, columns] += a[rows, depth] * b[depth, kColumns].
OCTET_WIDE void tile(const float* __restrict a, int64_t a_pitch, const float* __restrict b, int64_t b_pitch,
                     float* __restrict c, int64_t c_pitch, int64_t rows, int64_t depth, int64_t columns) {
  float sum[kRows][kColumns] = {};
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < columns; ++j) sum[r][j] = c[r * c_pitch + j];
  if (rows == kRows) {
    for (int64_t d = 0; d < depth; ++d)
      for (int64_t r = 0; r < kRows; ++r) {
        const float x = a[r * a_pitch + d];
        for (int64_t j = 0; j < kColumns; ++j) sum[r][j] += x * b[d * b_pitch + j];
      }
  } else {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t d = 0; d < depth; ++d) {
        const float x = a[r * a_pitch + d];
        for (int64_t j = 0; j < kColumns; ++j) sum[r][j] += x * b[d * b_pitch + j];
      }
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < columns; ++j) c[r * c_pitch + j] = sum[r][j];
}

}  // namespace

void matrix_product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n, int threads) {
  std::fill(c, c + m * n, 0.0f);
  if (m == 0 || n == 0 || k == 0) return;
  const int64_t panels = (n + kColumns - 1) / kColumns;
  parallel_for(panels, m * n * k > 1 << 20 ? threads : 1, [&](int64_t panel) {
    const int64_t j = panel * kColumns, columns = std::min(kColumns, n - j);
    if (m <= kRows && columns == kColumns) return tile(a, k, b + j, n, c + j, n, m, k, columns);  // read but once
    std::vector<float> packed(static_cast<size_t>(kDepth * kColumns), 0.0f);  // with zeros beside the last columns
    for (int64_t d = 0; d < k; d += kDepth) {
      const int64_t depth = std::min(kDepth, k - d);
      for (int64_t i = 0; i < depth; ++i)
        std::memcpy(packed.data() + i * kColumns, b + (d + i) * n + j, static_cast<size_t>(columns) * sizeof(float));
      for (int64_t r = 0; r < m; r += kRows)
        tile(a + r * k + d, k, packed.data(), kColumns, c + r * n + j, n, std::min(kRows, m - r), depth, columns);
    }
  });
}

void transpose(const float* from, float* to, int64_t rows, int64_t columns) {
  constexpr int64_t kBlock = 32;  // so that both are read and written in lines of the cache
  for (int64_t i = 0; i < rows; i += kBlock)
    for (int64_t j = 0; j < columns; j += kBlock)
      for (int64_t r = i; r < std::min(rows, i + kBlock); ++r)
        for (int64_t c = j; c < std::min(columns, j + kBlock); ++c) to[c * rows + r] = from[r * columns + c];
}

}  // namespace octet::dense
