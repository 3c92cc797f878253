#define OCTET_UPDATE_TABLE update_table_avx2
#include "train/update_kernels_body.h"
