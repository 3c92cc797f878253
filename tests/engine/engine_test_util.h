// Plans built by hand for the tests of the engine.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/executor.h"
#include "engine/plan.h"

namespace octet::testing {

// Collects the constants of a hand-made plan.
struct Constants {
  std::vector<std::byte> bytes;
  template <typename T>
  engine::ConstantRef add(const std::vector<T>& values) {
    bytes.resize((bytes.size() + 63) / 64 * 64);
    const auto raw = std::as_bytes(std::span<const T>(values));
    const engine::ConstantRef ref{static_cast<int64_t>(bytes.size()), static_cast<int64_t>(raw.size())};
    bytes.insert(bytes.end(), raw.begin(), raw.end());
    return ref;
  }
};

// x (1 x 3 x 6 x 5, float) -> codes -> 3x3 convolution with 20 channels and ReLU -> max pool -> floats y.
inline engine::Plan small_plan() {
  using engine::Layout;
  engine::Plan plan{.name = "small", .metadata = {{"stage", "test"}}, .isa = "scalar"};
  plan.buffers = {
      {.name = "x", .shape = {1, 3, 6, 5}},
      {.name = "q",
       .layout = Layout::kCodes,
       .shape = {1, 3, 6, 5},
       .scale = 0.01f,
       .zero_point = 128,
       .code_offset = 128,
       .halo = {1, 1, 1, 1}},
      {.name = "conv",
       .layout = Layout::kCodes,
       .shape = {1, 20, 6, 5},
       .scale = 0.02f,
       .zero_point = 128,
       .code_offset = 128},
      {.name = "pool",
       .layout = Layout::kCodes,
       .shape = {1, 20, 3, 2},
       .scale = 0.02f,
       .zero_point = 128,
       .code_offset = 128},
      {.name = "y", .shape = {1, 20, 3, 2}},
  };
  plan.inputs = {0}, plan.outputs = {4};
  Constants constants;
  const kernels::ConvGeometry g{
      .in_channels = 3, .out_channels = 20, .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1};
  std::vector<int8_t> weights(20 * 27);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int8_t>(i * 37 % 255 - 127);
  std::vector<int8_t> packed(kernels::conv_layout(g, 4).weight_bytes);
  kernels::pack_conv_weights(g, 4, weights, packed);
  std::vector<int32_t> start(32);
  kernels::make_acc_init(weights, 20, std::vector<int32_t>(20, 100), 128, start);
  plan.steps = {
      {.kind = "quantize", .name = "q", .op = "FakeQuantize", .inputs = {0}, .outputs = {1}, .int8 = true},
      {.kind = "conv",
       .name = "conv",
       .op = "Conv+Relu",
       .inputs = {1},
       .outputs = {2},
       .ints = {{"kernel_h", 3}, {"kernel_w", 3}, {"pad_top", 1}, {"pad_left", 1}, {"lo", 128}, {"hi", 255}},
       .constants = {{"weights", constants.add(packed)},
                     {"acc_init", constants.add(start)},
                     {"multiplier", constants.add(std::vector<float>(32, 0.003f))}},
       .int8 = true},
      {.kind = "max_pool",
       .name = "pool",
       .op = "MaxPool",
       .inputs = {2},
       .outputs = {3},
       .ints = {{"kernel_h", 2}, {"kernel_w", 2}, {"stride_h", 2}, {"stride_w", 2}},
       .int8 = true},
      {.kind = "dequantize", .name = "y", .op = "dequantize", .inputs = {3}, .outputs = {4}, .int8 = true},
  };
  constants.bytes.resize((constants.bytes.size() + 63) / 64 * 64);
  plan.constants = engine::make_constant_blob(constants.bytes);
  engine::plan_memory(plan);
  return plan;
}

inline std::vector<float> ramp(int64_t count) {
  std::vector<float> out(count);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(i * 7 % 41 - 20) / 16;
  return out;
}

inline std::vector<float> run(std::shared_ptr<const engine::Plan> plan, const engine::ExecutorOptions& options = {}) {
  engine::Executor executor(plan, options);
  const std::vector<float> x = ramp(plan->buffers[plan->inputs[0]].elements());
  std::vector<float> y(plan->buffers[plan->outputs[0]].elements(), -1);
  const float* in[] = {x.data()};
  float* out[] = {y.data()};
  executor.run(in, out);
  return y;
}

// The message of the UserError that `call` throws; empty when it throws none.
template <typename Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

}  // namespace octet::testing
