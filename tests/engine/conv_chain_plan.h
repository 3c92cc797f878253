// A plan of convolutions that every instruction set has several tactics for, for tests that look at the tactics.
#pragma once
#include "engine_test_util.h"

namespace octet::testing {

// x (1 x 32 x 12 x 12, float) -> codes -> 3x3 -> 1x1 -> 3x3 stride 2 -> 1x1 on few pixels -> floats y (1 x 32 x 6 x 6).
// `tactic` is stored in every convolution.
inline engine::Plan conv_chain_plan(const std::string& tactic = "") {
  using engine::Layout;
  engine::Plan plan{.name = "conv_chain", .isa = "scalar"};
  Constants constants;
  const auto codes = [&](int64_t channels, int64_t size, int64_t halo) {
    plan.buffers.push_back({.name = "b" + std::to_string(plan.buffers.size()),
                            .layout = Layout::kCodes,
                            .shape = {1, channels, size, size},
                            .scale = 0.02f,
                            .zero_point = 9,
                            .halo = {halo, halo, halo, halo}});
    return static_cast<int>(plan.buffers.size()) - 1;
  };
  const auto conv = [&](int in, int out, int64_t kernel, int64_t stride) {
    const engine::Buffer &x = plan.buffers[in], &y = plan.buffers[out];
    const kernels::ConvGeometry g{.in_channels = x.c(),
                                  .out_channels = y.c(),
                                  .kernel_h = kernel,
                                  .kernel_w = kernel,
                                  .stride_h = stride,
                                  .stride_w = stride,
                                  .pad_top = kernel / 2,
                                  .pad_left = kernel / 2};
    const int64_t pitch = kernels::channel_pitch(x.c()), padded = kernels::padded_channels(y.c());
    std::vector<int8_t> weights(y.c() * x.c() * kernel * kernel), packed(kernels::conv_layout(g, pitch).weight_bytes);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int8_t>(i * 37 % 63 - 31);
    kernels::pack_conv_weights(g, pitch, weights, packed);
    std::vector<int32_t> start(padded);
    kernels::make_acc_init(weights, y.c(), std::vector<int32_t>(y.c(), 100), x.zero_point, start);
    plan.steps.push_back({.kind = "conv",
                          .name = y.name,
                          .op = "Conv",
                          .inputs = {in},
                          .outputs = {out},
                          .ints = {{"kernel_h", kernel},
                                   {"kernel_w", kernel},
                                   {"stride_h", stride},
                                   {"stride_w", stride},
                                   {"pad_top", kernel / 2},
                                   {"pad_left", kernel / 2},
                                   {"lo", 0},
                                   {"hi", 255}},
                          .constants = {{"weights", constants.add(packed)},
                                        {"acc_init", constants.add(start)},
                                        {"multiplier", constants.add(std::vector<float>(padded, 0.002f))}},
                          .tactic = tactic,
                          .int8 = true});
  };
  plan.buffers.push_back({.name = "x", .shape = {1, 32, 12, 12}});
  const int x = codes(32, 12, 1), a = codes(64, 12, 0), b = codes(32, 12, 1), c = codes(64, 6, 0), d = codes(32, 6, 0);
  plan.buffers.push_back({.name = "y", .shape = {1, 32, 6, 6}});
  plan.inputs = {0}, plan.outputs = {6};
  plan.steps.push_back(
      {.kind = "quantize", .name = "q", .op = "Quantize", .inputs = {0}, .outputs = {x}, .int8 = true});
  conv(x, a, 3, 1), conv(a, b, 1, 1), conv(b, c, 3, 2), conv(c, d, 1, 1);
  plan.steps.push_back(
      {.kind = "dequantize", .name = "y", .op = "Dequantize", .inputs = {d}, .outputs = {6}, .int8 = true});
  constants.bytes.resize((constants.bytes.size() + 63) / 64 * 64);
  plan.constants = engine::make_constant_blob(constants.bytes);
  engine::plan_memory(plan);
  return plan;
}

}  // namespace octet::testing
