#define OCTET_KERNELS_TABLE tables_avx512
#include "train/ops_kernels_body.h"
