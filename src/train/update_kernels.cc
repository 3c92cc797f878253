#include "train/update_kernels.h"

#include "base/cpu_features.h"

namespace octet::train::kernels {

const UpdateTable& update_table() {
  static const UpdateTable& best = cpu_features().avx512 ? update_table_avx512()
                                   : cpu_features().avx2 ? update_table_avx2()
                                                         : update_table_base();
  return best;
}

}  // namespace octet::train::kernels
