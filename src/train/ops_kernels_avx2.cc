#define OCTET_KERNELS_TABLE tables_avx2
#include "train/ops_kernels_body.h"
