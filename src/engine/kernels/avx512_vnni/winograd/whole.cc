// Winograd convolution with vpdpwssd: products of 6 tiles x 64 output channels.
#include "engine/kernels/avx512_vnni/winograd/products.h"

namespace octet::kernels {

const WinogradKernel winograd_avx512_vnni{Avx512Winograd::kBlocking, Winograd<Avx512Winograd>::prepare,
                                          Winograd<Avx512Winograd>::run};

}  // namespace octet::kernels
