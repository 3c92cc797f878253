// Time of Winograd against the direct convolution of the same instruction set, one thread: the 3x3 layers of ResNet and
// of DetectNet_v2. Both run in turn; the least processor time of each counts. "of direct" is relative to what the
// instruction set's direct products reach at best (MAC a cycle: AVX2 24, AVX-VNNI 64, AVX-512 128).
//   winograd_layers [ISA [RUNS [block_tiles group]]]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "engine/kernels/kernel_table.h"
#include "engine/kernels/winograd/winograd.h"

using namespace octet;
using namespace octet::kernels;

namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <typename T = std::byte>
T* random_bytes(int64_t bytes, uint32_t mask = 0xff) {
  auto* p = static_cast<uint8_t*>(std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64)));
  uint32_t state = 1;
  for (int64_t i = 0; i < bytes; ++i)
    p[i] = static_cast<uint8_t>((state = state * 1664525u + 1013904223u) >> 24 & mask);
  return reinterpret_cast<T*>(p);
}

// Seconds of a cycle, from a chain of dependent additions.
double seconds_per_cycle() {
  double best = 1;
  for (int i = 0; i < 5; ++i) {
    const double start = now();
    int64_t n = 300000;
    asm volatile("1: dec %0\n jnz 1b" : "+r"(n));
    best = std::min(best, (now() - start) / 300000);
  }
  return best;
}

void measure(Isa isa, const WinogradKernel& kernel, int64_t h, int64_t w, int64_t ic, int64_t oc, int runs) {
  ConvArgs a;
  a.geometry = {.in_channels = ic, .out_channels = oc, .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1};
  const Halo halo{1, 1, 1, 1};
  a.in = make_qtensor(random_bytes<uint8_t>(qtensor_bytes(1, h, w, ic, halo)), 1, h, w, ic, halo, 0);
  a.epilogue.out = make_qtensor(random_bytes<uint8_t>(qtensor_bytes(1, h, w, oc, halo)), 1, h, w, oc, halo, 0);
  a.weights = random_bytes<int8_t>(conv_layout(a.geometry, a.in.c_pitch).weight_bytes);
  a.acc_init = random_bytes<int32_t>(padded_channels(oc) * 4, 0);
  std::vector<float> multiplier(static_cast<size_t>(padded_channels(oc)),
                                static_cast<float>(1 / (100 * std::sqrt(9.0 * static_cast<double>(ic)))));
  a.epilogue.multiplier = multiplier.data();
  const WinogradPlan plan = winograd_plan(a, kernel.blocking);
  auto* prepared = random_bytes(plan.prepared_bytes);
  auto* scratch = random_bytes(plan.scratch_bytes);
  const double start = now();
  kernel.prepare(a, plan, prepared);
  const double prepare_ms = (now() - start) * 1e3;
  const Range rows{0, h}, blocks{0, padded_channels(oc) / kChannelBlock};
  double winograd = 1e9, direct = 1e9, cycle = 1;
  for (int r = 0; r < runs; ++r) {
    cycle = std::min(cycle, seconds_per_cycle());
    double t = now();
    kernel.run(a, plan, prepared, scratch, rows, blocks);
    winograd = std::min(winograd, now() - t);
    if (r % 2) continue;
    t = now();
    octet::kernels::kernels(isa).conv(a, rows, blocks);
    direct = std::min(direct, now() - t);
  }
  const double macs = 9.0 * static_cast<double>(h * w * ic * oc), peak = isa == Isa::kAvx2      ? 24
                                                                         : isa == Isa::kAvxVnni ? 64
                                                                                                : 128;
  std::printf(
      "%4ldx%-3ld %3ld->%-3ld  winograd %8.1f us %6.1f MAC/cycle %4.2f of direct   direct kernel %8.1f us %6.1f "
      "MAC/cycle   x%.2f   prepare %.2f ms, %.1f MB, scratch %.2f MB, parts %d\n",
      h, w, ic, oc, winograd * 1e6, macs / (winograd / cycle), macs / (winograd / cycle) / peak, direct * 1e6,
      macs / (direct / cycle), direct / winograd, prepare_ms, static_cast<double>(plan.prepared_bytes) * 1e-6,
      static_cast<double>(plan.scratch_bytes) * 1e-6, *reinterpret_cast<const int*>(prepared));
  std::fflush(stdout);
  for (const void* p : {static_cast<const void*>(prepared), static_cast<const void*>(scratch),
                        static_cast<const void*>(a.weights), static_cast<const void*>(a.acc_init)})
    std::free(const_cast<void*>(p));
}

}  // namespace

int main(int argc, char** argv) {
  const Isa isa = argc > 1 ? parse_isa(argv[1]) : default_isa();
  if (!isa_supported(isa) || isa < Isa::kAvx2) {
    std::fprintf(stderr, "this CPU has no Winograd kernel for %s\n", isa_name(isa));
    return 77;
  }
  WinogradKernel kernel = isa == Isa::kAvx2      ? winograd_avx2
                          : isa == Isa::kAvxVnni ? winograd_avx_vnni
                                                 : winograd_avx512_vnni;
  const int runs = argc > 2 ? std::atoi(argv[2]) : 20;
  if (argc > 4) kernel.blocking.block_tiles = std::atoi(argv[3]), kernel.blocking.group = std::atoi(argv[4]);
  constexpr int64_t kLayers[][4] = {{56, 56, 64, 64},   {28, 28, 128, 128},  {14, 14, 256, 256}, {7, 7, 512, 512},
                                    {136, 240, 64, 64}, {68, 120, 128, 128}, {34, 60, 256, 256}, {34, 60, 512, 512}};
  for (const auto& l : kLayers)
    measure(isa, kernel, l[0], l[1], l[2], l[3], l[0] * l[1] * l[2] > 200000 ? (runs + 3) / 4 : runs);
}
