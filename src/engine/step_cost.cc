#include "engine/step_cost.h"

#include <string>

namespace octet::engine {
namespace {

int64_t number(const Step& step, const char* key, int64_t fallback) {
  const auto found = step.ints.find(key);
  return found == step.ints.end() ? fallback : found->second;
}

int64_t taps(const Step& step) {
  return number(step, "kernel_h", 1) * number(step, "kernel_w", 1);
}

// Also of products of matrices: an image of one pixel.
int64_t conv_macs(const Plan& plan, const Step& step) {
  const Buffer &in = plan.buffers[step.inputs[0]], &out = plan.buffers[step.outputs[0]];
  return out.elements() * in.c() / number(step, "groups", 1) * taps(step);
}

int64_t depthwise_macs(const Plan& plan, const Step& step) {
  return plan.buffers[step.outputs[0]].elements() * taps(step);
}

int64_t conv_transpose_macs(const Plan& plan, const Step& step) {
  const Buffer &in = plan.buffers[step.inputs[0]], &out = plan.buffers[step.outputs[0]];
  return in.elements() * out.c() / number(step, "groups", 1) * taps(step);
}

int64_t gemm_macs(const Plan& plan, const Step& step) {
  return plan.buffers[step.outputs[0]].elements() * number(step, "k", 0);
}

// Both factors are codes; the output has all but the depth.
int64_t int8_matmul_macs(const Plan& plan, const Step& step) {
  return plan.buffers[step.outputs[0]].elements() * plan.buffers[step.inputs[0]].shape.back();
}

int64_t matmul_macs(const Plan&, const Step& step) {
  return number(step, "batches", 1) * number(step, "m", 0) * number(step, "n", 0) * number(step, "k", 0);
}

// The products of the gate: a chain of 1x1 convolutions on one pixel.
int64_t squeeze_excite_macs(const Plan& plan, const Step& step) {
  const Buffer& x = plan.buffers[step.inputs[0]];
  int64_t macs = 0, in = x.c();
  for (int64_t i = 0; i < number(step, "layers", 0); ++i) {
    const int64_t out = number(step, (std::to_string(i) + "_channels").c_str(), 0);
    macs += in * out;
    in = out;
  }
  return x.n() * macs;
}

int64_t no_macs(const Plan&, const Step&) {
  return 0;
}

constexpr struct {
  const char* kind;
  int64_t (*macs)(const Plan& plan, const Step& step);
} kStepMacs[] = {
    {"conv", conv_macs},
    {"depthwise", depthwise_macs},
    {"max_pool", no_macs},
    {"average_pool", no_macs},
    {"global_average", no_macs},
    {"row_sums", no_macs},
    {"squeeze_excite", squeeze_excite_macs},
    {"add", no_macs},
    {"mul", no_macs},
    {"copy", no_macs},
    {"channel_tables", no_macs},
    {"scale_shift_codes", no_macs},
    {"fill", no_macs},
    {"resize_nearest", no_macs},
    {"channel_shuffle", no_macs},
    {"quantize", no_macs},
    {"dequantize", no_macs},
    {"quantize_rows", no_macs},
    {"int8_matmul", int8_matmul_macs},
    {"float_conv", conv_macs},
    {"float_depthwise", depthwise_macs},
    {"float_conv_transpose", conv_transpose_macs},
    {"float_gemm", gemm_macs},
    {"float_matmul", matmul_macs},
    {"float_pool", no_macs},
    {"unary", no_macs},
    {"binary", no_macs},
    {"strided_copy", no_macs},
    {"softmax", no_macs},
    {"layer_norm", no_macs},
    {"reduce", no_macs},
    {"arg_max", no_macs},
    {"index_to_float", no_macs},
    {"scale_shift", no_macs},
    {"float_resize", no_macs},
    {"float_resample", no_macs},
    {"lrn", no_macs},
};

}  // namespace

StepCost step_cost(const Plan& plan, const Step& step) {
  StepCost cost;
  for (const auto& row : kStepMacs)
    if (step.kind == row.kind) cost.macs = row.macs(plan, step);
  for (const auto* list : {&step.inputs, &step.outputs})
    for (int id : *list) cost.bytes += plan.buffers[id].bytes();
  for (const auto& [key, constant] : step.constants) cost.bytes += constant.bytes;
  return cost;
}

}  // namespace octet::engine
