#include "engine/kernels/avx512_vnni/conv.h"
#include "engine/kernels/isa_kernels.h"

namespace octet::kernels {

void add_avx512_vnni_kernels(KernelTable& table) {
  constexpr Isa kIsa = Isa::kAvx512Vnni;
  table.conv = {conv_avx512_vnni, kIsa};
  table.depthwise = {depthwise_avx512_vnni, kIsa};
}

}  // namespace octet::kernels
