// The product of two matrices of floats, for rows whose number comes up in a run.
#pragma once
#include <cstdint>

namespace octet::dense {

// c[m, n] = a[m, k] * b[k, n], all row-major without gaps. Each sum is taken in the order of k, whatever the threads.
void matrix_product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n, int threads);

// to[columns, rows] = the transpose of from[rows, columns].
void transpose(const float* from, float* to, int64_t rows, int64_t columns);

}  // namespace octet::dense
