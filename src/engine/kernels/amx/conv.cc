// INT8 convolution on AMX tiles. A tile row of activations is one output pixel: K bytes straight from the NHWC tensor,
// with the pixel pitch as row stride; the packed weights are a sequence of tile rows already.
#include "engine/kernels/amx/conv_tiles.h"
#include "engine/kernels/amx/tactics.h"
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/isa_kernels.h"

namespace octet::kernels {
namespace {

void conv_amx(const ConvArgs& a, Range rows, Range blocks) {
  if (!tiles_apply(a)) return conv_avx512_vnni(a, rows, blocks);
  run_tiles(choose_blocking(a, rows, blocks), a, rows, blocks);
}

}  // namespace

void add_amx_kernels(KernelTable& table) {
  for (const ConvTactic& tactic :
       {folded_tactic(), sliced_tactic(), planes_tactic(), tiles_2x2_tactic(), tiles_4x1_tactic(), tiles_1x4_tactic()})
    table.conv_tactics.push_back(tactic);
  set_direct_conv(table, conv_amx, Isa::kAmxInt8, [](const ConvArgs& a, int threads) {
    // Where the tiles do not apply it is the dot products of AVX-512, and these are a tactic already.
    return tiles_apply(a) ? tiles_cost(a, threads) : cost_at_rate(a, threads, 84);
  });
}

}  // namespace octet::kernels
