// Plans of convolutions one after the other, for tests of tactics and of weights in quantity.
#pragma once
#include <cmath>

#include "engine_test_util.h"

namespace octet::testing {

// Float image of one batch -> codes -> convolutions with padding kernel / 2 -> float image.
class ConvChain {
 public:
  ConvChain(int64_t channels, int64_t size, std::string tactic = "") : tactic_(std::move(tactic)) {
    add({.name = "x", .shape = {1, channels, size, size}});
    step({.kind = "quantize", .name = "q", .op = "Quantize", .inputs = {0}, .outputs = {codes(channels, size)}});
  }
  ConvChain& conv(int64_t channels, int64_t kernel, int64_t stride) {
    const kernels::ConvGeometry g = geometry(channels, kernel, stride);
    const std::vector<int8_t> weights = random_weights(channels * g.in_channels * kernel * kernel);
    const int64_t pitch = kernels::channel_pitch(g.in_channels);
    std::vector<int8_t> packed(kernels::conv_layout(g, pitch).weight_bytes);
    kernels::pack_conv_weights(g, pitch, weights, packed);
    return weighted("conv", g, weights, packed);
  }
  // Stride 1, as many channels as there are.
  ConvChain& depthwise(int64_t kernel) {
    kernels::ConvGeometry g = geometry(plan_.buffers[last_].c(), kernel, 1);
    g.groups = g.in_channels;
    const std::vector<int8_t> weights = random_weights(g.out_channels * kernel * kernel);
    std::vector<int8_t> packed(kernels::depthwise_weight_bytes(g));
    kernels::pack_depthwise_weights(g, weights, packed);
    return weighted("depthwise", g, weights, packed);
  }
  engine::Plan finish() {
    const int in = last_, out = add({.name = "y", .shape = plan_.buffers[in].shape});
    step({.kind = "dequantize", .name = "y", .op = "Dequantize", .inputs = {in}, .outputs = {out}});
    plan_.inputs = {0}, plan_.outputs = {out};
    constants_.bytes.resize((constants_.bytes.size() + 63) / 64 * 64);
    plan_.constants = engine::make_constant_blob(constants_.bytes);
    engine::plan_memory(plan_);
    return std::move(plan_);
  }

 private:
  kernels::ConvGeometry geometry(int64_t channels, int64_t kernel, int64_t stride) const {
    return {.in_channels = plan_.buffers[last_].c(),
            .out_channels = channels,
            .kernel_h = kernel,
            .kernel_w = kernel,
            .stride_h = stride,
            .stride_w = stride,
            .pad_top = kernel / 2,
            .pad_left = kernel / 2};
  }
  static std::vector<int8_t> random_weights(int64_t count) {
    std::vector<int8_t> weights(count);
    uint32_t random = 1;
    for (int8_t& w : weights) {
      random = random * 1664525 + 1013904223;
      w = static_cast<int8_t>(static_cast<int>(random >> 24) % 63 - 31);
    }
    return weights;
  }
  ConvChain& weighted(const char* kind, const kernels::ConvGeometry& g, const std::vector<int8_t>& weights,
                      const std::vector<int8_t>& packed) {
    const int in = last_, out = codes(g.out_channels, (plan_.buffers[in].h() - 1) / g.stride_h + 1);
    engine::Buffer &x = plan_.buffers[in], &y = plan_.buffers[out];
    x.halo = {g.pad_top, g.pad_top, g.pad_left, g.pad_left};
    const int64_t padded = kernels::padded_channels(g.out_channels);
    std::vector<int32_t> start(padded);
    kernels::make_acc_init(weights, g.out_channels, std::vector<int32_t>(g.out_channels, 100), x.zero_point, start);
    // Results spread over the codes.
    const float products = static_cast<float>(g.in_channels / g.groups * g.kernel_h * g.kernel_w);
    const float multiplier = 0.1f / std::sqrt(products);
    step({.kind = kind,
          .name = y.name,
          .op = "Conv",
          .inputs = {in},
          .outputs = {out},
          .ints = {{"groups", g.groups},
                   {"kernel_h", g.kernel_h},
                   {"kernel_w", g.kernel_w},
                   {"stride_h", g.stride_h},
                   {"stride_w", g.stride_w},
                   {"pad_top", g.pad_top},
                   {"pad_left", g.pad_left},
                   {"lo", 0},
                   {"hi", 255}},
          .constants = {{"weights", constants_.add(packed)},
                        {"acc_init", constants_.add(start)},
                        {"multiplier", constants_.add(std::vector<float>(padded, multiplier))}},
          .tactic = g.groups == 1 ? tactic_ : ""});
    return *this;
  }
  int add(engine::Buffer b) {
    plan_.buffers.push_back(std::move(b));
    return static_cast<int>(plan_.buffers.size()) - 1;
  }
  int codes(int64_t channels, int64_t size) {
    return last_ = add({.name = "b" + std::to_string(plan_.buffers.size()),
                        .layout = engine::Layout::kCodes,
                        .shape = {1, channels, size, size},
                        .scale = 0.02f,
                        .zero_point = 60});
  }
  void step(engine::Step s) {
    s.int8 = true;
    plan_.steps.push_back(std::move(s));
  }

  engine::Plan plan_{.name = "conv_chain", .isa = "scalar"};
  Constants constants_;
  std::string tactic_;  // stored in every convolution
  int last_ = 0;
};

// Convolutions that instruction sets have several tactics for.
inline engine::Plan conv_chain_plan(const std::string& tactic = "") {
  return ConvChain(32, 12, tactic).conv(64, 3, 1).conv(32, 1, 1).conv(64, 3, 2).conv(32, 1, 1).finish();
}

// 28 MB of weights, like a ResNet-50.
inline engine::Plan heavy_plan() {
  ConvChain chain(512, 7);
  for (int i = 0; i < 12; ++i) chain.conv(512, 3, 1);
  return chain.finish();
}

}  // namespace octet::testing
