#define OCTET_KERNELS_TABLE tables_base
#include "train/ops_kernels_body.h"
