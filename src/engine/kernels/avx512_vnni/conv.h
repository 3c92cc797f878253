// The AVX-512 VNNI kernels, one function a file (see the Function types of the public headers).
#pragma once
#include "engine/kernels/kernel_table.h"

namespace octet::kernels {

ConvFunction conv_avx512_vnni;
DepthwiseFunction depthwise_avx512_vnni;

}  // namespace octet::kernels
