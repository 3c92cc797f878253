#include "train/ops_kernels.h"

#include "base/cpu_features.h"

namespace octet::train::kernels {

const Tables& tables() {
  static const Tables& best = cpu_features().avx512 ? tables_avx512()
                              : cpu_features().avx2 ? tables_avx2()
                                                    : tables_base();
  return best;
}

}  // namespace octet::train::kernels
