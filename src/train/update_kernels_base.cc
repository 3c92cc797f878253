#define OCTET_UPDATE_TABLE update_table_base
#include "train/update_kernels_body.h"
