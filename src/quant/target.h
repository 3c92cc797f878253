// For whose compiler a network is quantized. Training quantization-aware must see what will run, so a target acts from
// the placement of quantizers on, not only when files are written.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schema/enum_names.h"

namespace octet::quant {

// any          Octet's engine, TensorRT, OpenVINO: symmetric int8, and a convolution's accumulator meets a residual
//              before rounding
// onnxruntime  its CPU kernels: an operator is integer where Q/DQ pairs enclose it, so that every convolution's result
//              is quantized (behind its Relu or Clip) and both operands of a residual Add are; u8 behind ReLU, which
//              the quantizer then is; in the file int32 biases, on the grid that snap_biases gives them, and uint8
//              codes alone
// openvino     its CPU kernels: u8 behind ReLU; residuals as for `any`
//              Both CPUs' kernels take zero points as they are: u8 with one behind Swish and its kind.
// tensorrt     s8 everywhere, as it takes no unsigned activations
enum class Target { kAny, kOnnxRuntime, kOpenVino, kTensorRt };
std::span<const schema::EnumName<Target>> enum_names(Target);

struct TargetProfile {
  bool unsigned_activations = false;  // u8 for tensors that cannot be negative
  bool signed_only = false;           // it refuses u8
  bool zero_points = false;           // of tensors that reach hardly below zero (hardly_negative()) cost it nothing
  bool quantized_results = false;     // of convolutions; both operands of residual Adds
  bool onnxruntime_forms = false;     // in files (onnx::ExportOptions)
};
const TargetProfile& profile(Target target);

// The metadata entry of a quantized graph that names its target where that is not `any`.
inline constexpr const char* kTargetKey = "octet.quantized_for";
// kAny where the graph does not say; UserError for a name that is none.
Target target_of(const ir::Graph& graph);

// How many convolutions and matrix products with constant weights a runtime computes in integers, by its own rules.
struct IntegerProducts {
  int integer = 0, all = 0;
  std::vector<std::string> reasons;  // of the others: "Conv 'x': its result is not quantized"
};
// Types are inferred. Of kAny: as of kTensorRt, which asks for quantized inputs and weights alone.
IntegerProducts integer_products(const ir::Graph& graph, Target target);

}  // namespace octet::quant
