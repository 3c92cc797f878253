#include "engine/kernels/winograd/tactic.h"
#include "engine/kernels/cpu_model.h"

#include <algorithm>

#include "base/error.h"
#include "engine/kernels/epilogue_shortcuts.h"
#include "engine/kernels/winograd/winograd.h"

namespace octet::kernels {
namespace {

#if defined(__x86_64__)

// How fast a kernel is, measured with bench/kernels/winograd_layers.cc on one core.
struct Rates {
  double products;   // multiplications of 16-bit integers a cycle
  double transform;  // cycles for an input channel of a tile
  double finish;     // cycles for an output channel of a tile
};

// Cycles of the busiest of `threads` threads.
double cycles(const ConvArgs& a, const WinogradBlocking& blocking, const Rates& rates, int threads, ConvSplit split) {
  const WinogradPlan plan = winograd_plan(a, blocking);
  const int64_t all_tiles = winograd_tiles(a),
                pairs = (padded_channels(a.geometry.out_channels) / kChannelBlock + 1) / 2;
  const bool by_rows = split == ConvSplit::kRows;
  const int64_t units = by_rows ? all_tiles : pairs;
  const double share = static_cast<double>((units + threads - 1) / threads) / static_cast<double>(units);
  const double tiles = static_cast<double>(all_tiles) * (by_rows ? share : 1);
  const double channels = static_cast<double>(plan.channels),
               outputs = static_cast<double>(padded_channels(a.geometry.out_channels)) * (by_rows ? 1 : share);
  const double products = static_cast<double>(kWinogradPositions) * tiles * channels * outputs / rates.products;
  const double turns = std::max(1.0, tiles / static_cast<double>(plan.block_tiles));
  const double bytes = static_cast<double>(kWinogradPositions) * channels * outputs * 2;
  const double streamed = bytes > cpu_model().l2_bytes ? bytes * turns / cpu_model().streamed_per_cycle : 0;
  return std::max(products, streamed) + tiles * (channels * rates.transform + outputs * rates.finish);
}

struct Avx2 {
  static constexpr const char* kName = "winograd4x4";
  static constexpr Isa kIsa = Isa::kAvx2;
  static constexpr const WinogradKernel& kKernel = winograd_avx2;
  static Rates rates() { return {20, 9.5, 21}; }
  static bool applies(const ConvArgs& a) { return winograd_applies(a); }
};
struct AvxVnni : Avx2 {
  static constexpr Isa kIsa = Isa::kAvxVnni;
  static constexpr const WinogradKernel& kKernel = winograd_avx_vnni;
  static Rates rates() { return {25, 9.5, 21}; }
};
struct Avx512Vnni : Avx2 {
  static constexpr Isa kIsa = Isa::kAvx512Vnni;
  static constexpr const WinogradKernel& kKernel = winograd_avx512_vnni;
  static Rates rates() { return {53, 7, 11}; }
};
struct Avx512VnniRows : Avx512Vnni {
  static constexpr const char* kName = "row_winograd";
  static constexpr const WinogradKernel& kKernel = row_winograd_avx512_vnni;
  static Rates rates() { return cpu_model().shared_ports ? Rates{40, 7, 7} : Rates{53.5, 7, 7}; }
  static bool applies(const ConvArgs& a) {
    const Epilogue& e = a.epilogue;
    return winograd_applies(a) && e.out.data != nullptr && e.residual.data == nullptr &&
           e.out.c_pitch >= kChannelBlock && sums_are_bounded(e);
  }
};

template <typename Kind>
struct Tactic {
  static constexpr const WinogradKernel& kKernel = Kind::kKernel;

  static WinogradPlan plan(const ConvArgs& a) { return winograd_plan(a, kKernel.blocking); }
  static int64_t prepared_bytes(const ConvArgs& a) { return plan(a).prepared_bytes; }
  static int64_t scratch_bytes(const ConvArgs& a) { return plan(a).scratch_bytes; }
  static void prepare(const ConvArgs& a, std::byte* prepared) { kKernel.prepare(a, plan(a), prepared); }
  static void run(const ConvArgs& a, Range rows, Range blocks) {
    kKernel.run(a, plan(a), a.prepared, a.scratch, rows, blocks);
  }
  static double time(const ConvArgs& a, int threads, ConvSplit split) {
    return cycles(a, kKernel.blocking, Kind::rates(), threads, split) / cpu_model().cycles_per_us;
  }
  static double cost(const ConvArgs& a, int threads) {
    return std::min(time(a, threads, ConvSplit::kRows), time(a, threads, ConvSplit::kChannels));
  }
  // By tiles, or by pairs of blocks of output channels, which repeats the transform of the input.
  static ConvShare share(const ConvArgs& a, int part, int parts) {
    const QTensor& out = a.epilogue.out;
    const int64_t blocks = padded_channels(a.geometry.out_channels) / kChannelBlock, pairs = (blocks + 1) / 2;
    ConvShare share{{0, out.n * out.h}, {0, blocks}};
    const bool by_rows = a.split == ConvSplit::kAuto
                             ? time(a, parts, ConvSplit::kRows) <= time(a, parts, ConvSplit::kChannels)
                             : a.split == ConvSplit::kRows;
    if (by_rows) {
      const int64_t all = winograd_tiles(a);
      share.tiles = {all * part / parts, all * (part + 1) / parts};
      // A range without tiles would stand for all of them.
      if (share.tiles.begin == share.tiles.end) share.rows = {};
    } else {
      share.blocks = {std::min(blocks, pairs * part / parts * 2), std::min(blocks, pairs * (part + 1) / parts * 2)};
    }
    return share;
  }
  static ConvTactic tactic() {
    return {.name = Kind::kName,
            .isa = Kind::kIsa,
            .applies = Kind::applies,
            .prepared_bytes = prepared_bytes,
            .prepare = prepare,
            .scratch_bytes = scratch_bytes,
            .run = run,
            .rows_at_once = kWinogradTile,
            .share = share,
            .cost = cost};
  }
};

#endif

}  // namespace

void add_winograd(KernelTable& table, Isa isa) {
#if defined(__x86_64__)
  auto& tactics = table.conv_tactics;
  if (isa == Isa::kAvx512Vnni) tactics.insert(tactics.begin(), Tactic<Avx512VnniRows>::tactic());
  tactics.insert(tactics.begin(), isa == Isa::kAvx2      ? Tactic<Avx2>::tactic()
                                  : isa == Isa::kAvxVnni ? Tactic<AvxVnni>::tactic()
                                                         : Tactic<Avx512Vnni>::tactic());
#endif
}

}  // namespace octet::kernels
