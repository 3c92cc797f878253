// The product of two matrices of floats, for rows whose number comes up in a run.
#pragma once
#include <cstdint>

namespace octet::dense {

// c[m, n] = a[m, k] * b[k, n], all row-major without gaps. Each sum is taken in the order of k, whatever the threads.
void matrix_product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n, int threads);

}  // namespace octet::dense
