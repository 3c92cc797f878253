// INT8 convolution with the 256-bit dot products of AVX-VNNI (client processors without AVX-512).
#include "engine/kernels/avx2/conv_rows.h"
#include "engine/kernels/isa_kernels.h"

namespace octet::kernels {
namespace {

struct VnniDot {
  static constexpr int kPixels = 6;
  struct Weights {
    Y v[2];
  };
  static OCTET_INLINE Weights load(const int8_t* w) { return {{load32(w), load32(w + 32)}}; }
  static OCTET_INLINE void add(Y& a0, Y& a1, int32_t four_bytes, const Weights& w) {
    const Y x = _mm256_set1_epi32(four_bytes);
    a0 = _mm256_dpbusd_avx_epi32(a0, x, w.v[0]);
    a1 = _mm256_dpbusd_avx_epi32(a1, x, w.v[1]);
  }
};

void conv_avx_vnni(const ConvArgs& a, Range rows, Range blocks) {
  conv_rows<VnniDot>(a, rows, blocks);
}

}  // namespace

void add_avx_vnni_kernels(KernelTable& table) {
  set_direct_conv(table, conv_avx_vnni, Isa::kAvxVnni,
                  [](const ConvArgs& a, int threads) { return cost_at_rate(a, threads, 45); });
}

}  // namespace octet::kernels
