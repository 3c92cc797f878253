#define OCTET_UPDATE_TABLE update_table_avx512
#include "train/update_kernels_body.h"
