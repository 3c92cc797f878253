// Time of all convolutions of ResNet-18 (224x224, batch 1) and of some mobile layers in sequence, weights cold, by
// instruction set and thread count: what the kernels alone cost.
//   conv_chain [ISA [THREADS [layers]]]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/kernels/kernel_table.h"

using namespace octet;
using namespace octet::kernels;

namespace {

struct Layer {
  std::string name;
  int64_t size, ic, oc, kernel, stride;
  bool residual = false, depthwise = false;
};

std::vector<Layer> resnet18() {
  std::vector<Layer> layers{{"stem 7x7", 224, 3, 64, 7, 2}};
  int64_t channels = 64, size = 56;
  for (int stage = 0; stage < 4; ++stage) {
    for (int block = 0; block < 2; ++block) {
      const int64_t oc = 64 << stage;
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      if (stride == 2) layers.push_back({"1x1 s2 " + std::to_string(oc), size, channels, oc, 1, 2});
      layers.push_back({"3x3 " + std::to_string(oc), size, channels, oc, 3, stride});
      size /= stride;
      channels = oc;
      layers.push_back({"3x3+r " + std::to_string(oc), size, oc, oc, 3, 1, true});
    }
  }
  return layers;
}

std::vector<Layer> mobile() {
  std::vector<Layer> layers{
      {"stem 3x3", 224, 3, 32, 3, 2}, {"dw 32", 112, 32, 32, 3, 1, false, true}, {"1x1 32-16", 112, 32, 16, 1, 1}};
  const int64_t table[][4] = {{6, 24, 2, 2}, {6, 32, 3, 2},  {6, 64, 4, 2},
                              {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  int64_t c = 16, size = 112;
  for (const auto& row : table)
    for (int i = 0; i < row[2]; ++i) {
      const int64_t stride = i == 0 ? row[3] : 1, wide = c * row[0];
      layers.push_back({"expand " + std::to_string(wide), size, c, wide, 1, 1});
      layers.push_back(
          {"dw " + std::to_string(wide) + " s" + std::to_string(stride), size, wide, wide, 3, stride, false, true});
      size /= stride;
      layers.push_back({"project " + std::to_string(row[1]), size, wide, row[1], 1, 1, i > 0});
      c = row[1];
    }
  layers.push_back({"1x1 1280", 7, 320, 1280, 1, 1});
  return layers;
}

struct Ready {
  ConvArgs args;
  bool depthwise = false;
  double us = 1e9;
};

uint8_t* zeroed(int64_t bytes) {
  auto* p = static_cast<uint8_t*>(std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64)));
  for (int64_t i = 0; i < bytes; ++i) p[i] = static_cast<uint8_t>(i * 37);
  return p;
}

Ready prepare(const Layer& l) {
  Ready r;
  r.depthwise = l.depthwise;
  ConvGeometry& g = r.args.geometry;
  g = {.in_channels = l.ic,
       .out_channels = l.oc,
       .groups = l.depthwise ? l.ic : 1,
       .kernel_h = l.kernel,
       .kernel_w = l.kernel,
       .stride_h = l.stride,
       .stride_w = l.stride,
       .pad_top = l.kernel / 2,
       .pad_left = l.kernel / 2};
  const int64_t pad = l.kernel / 2, out = l.size / l.stride;
  const Halo halo{pad, pad, pad, pad};
  r.args.in = make_qtensor(zeroed(qtensor_bytes(1, l.size, l.size, l.ic, halo)), 1, l.size, l.size, l.ic, halo, 3);
  const Halo out_halo{};
  Epilogue& e = r.args.epilogue;
  e.out = make_qtensor(zeroed(qtensor_bytes(1, out, out, l.oc, out_halo)), 1, out, out, l.oc, out_halo, 0);
  if (l.residual) {
    e.residual = make_qtensor(zeroed(qtensor_bytes(1, out, out, l.oc, out_halo)), 1, out, out, l.oc, out_halo, 0);
    e.residual_multiplier = 0.5f;
  }
  const int64_t bytes = l.depthwise ? depthwise_weight_bytes(g) : conv_layout(g, r.args.in.c_pitch).weight_bytes;
  r.args.weights = reinterpret_cast<int8_t*>(zeroed(bytes));
  const int64_t padded = padded_channels(l.oc);
  r.args.acc_init = reinterpret_cast<int32_t*>(zeroed(padded * 4));
  auto* m = reinterpret_cast<float*>(zeroed(padded * 4));
  std::fill(m, m + padded, 0.001f);
  e.multiplier = m;
  return r;
}

void run(const KernelTable& k, const Ready& r, int part, int parts) {
  if (r.depthwise) {
    const int64_t rows = r.args.epilogue.out.h;
    k.depthwise(r.args, Range{rows * part / parts, rows * (part + 1) / parts});
    return;
  }
  const ConvShare s = conv_share(r.args, part, parts);
  k.conv(r.args, s.rows, s.blocks);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Minimum over `repeats` passes; threads meet at a spinning barrier after every layer.
double measure(const KernelTable& k, std::vector<Ready>& layers, int threads, int repeats) {
  std::atomic<int64_t> arrived{0};
  double best = 1e9;
  const auto work = [&](int part) {
    int64_t turn = 0;
    const auto barrier = [&] {
      arrived.fetch_add(1);
      ++turn;
      while (arrived.load() < turn * threads) {
      }
    };
    for (int i = 0; i < repeats; ++i) {
      barrier();
      const double start = now();
      for (Ready& r : layers) {
        const double t = now();
        run(k, r, part, threads);
        barrier();
        if (part == 0) r.us = std::min(r.us, (now() - t) * 1e6);
      }
      if (part == 0) best = std::min(best, now() - start);
    }
  };
  std::vector<std::thread> team;
  for (int p = 1; p < threads; ++p) team.emplace_back(work, p);
  work(0);
  for (auto& t : team) t.join();
  return best * 1e3;
}

}  // namespace

int main(int argc, char** argv) {
  const Isa isa = argc > 1 ? parse_isa(argv[1]) : default_isa();
  if (!isa_supported(isa)) {  // also asks the system for the AMX tiles
    std::fprintf(stderr, "this CPU cannot run %s\n", isa_name(isa));
    return 77;
  }
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  for (const bool small : {false, true}) {
    const std::vector<Layer> layers = small ? mobile() : resnet18();
    std::vector<Ready> ready;
    for (const Layer& l : layers) ready.push_back(prepare(l));
    const double ms = measure(octet::kernels::kernels(isa), ready, threads, 30);
    double macs = 0;
    for (size_t i = 0; i < layers.size(); ++i) {
      const Layer& l = layers[i];
      const double m = static_cast<double>(ready[i].args.epilogue.out.h * ready[i].args.epilogue.out.w * l.oc *
                                           (l.depthwise ? 1 : l.ic) * l.kernel * l.kernel);
      macs += m;
      if (argc > 3)
        std::printf("  %-14s %3ld  %8.1f us  %7.1f GMAC/s\n", l.name.c_str(), l.size, ready[i].us,
                    m / ready[i].us / 1e3);
    }
    std::printf("%-12s %s, %d threads: %.3f ms, %.1f GMAC/s\n", small ? "MobileNetV2" : "ResNet-18", isa_name(isa),
                threads, ms, macs / ms / 1e6);
  }
}
