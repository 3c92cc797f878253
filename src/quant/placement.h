// Which tensors are quantized, and why: the rules of placement. They follow a model of what deployment compilers fuse:
//
//   Conv (+ bias) (+ BatchNormalization) (+ Add with a quantized residual) (+ activation) -> one INT8 kernel.
//
// So inputs are quantized, never outputs: the quantizer that ends a fused kernel is that of the next node's input.
// (A target whose kernels are not fused like that has rules beside these: target.h.)
//  - Conv, ConvTranspose, Gemm, MatMul with constant weights: activation per tensor, weights per output channel.
//  - AveragePool, GlobalAveragePool, ReduceMean over space: their input.
//  - Residual Add: all inputs except the one that a fusible convolution makes for this Add alone (the convolution's
//    accumulator meets the residual before rounding). A quantizer there would split the kernel in two.
//  - By family: Mul of squeeze-and-excitation, batch norm that follows no convolution, max pools, Concat.
// One tensor has one FakeQuantize, shared by all who want it quantized; everyone else (Sigmoid, Softmax, a node that
// the user excluded) reads the float tensor.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "quant/layer_options.h"
#include "quant/node_selection.h"
#include "quant/placement_rules.h"
#include "quant/qdq_case.h"
#include "quant/target.h"
#include "schema/enum_names.h"

namespace octet::quant {

struct PlacementOptions {
  Target target = Target::kAny;                               // its profile adds to the rules
  std::vector<PlacementRule> rules = {PlacementRule::kAuto};  // several: the union
  std::vector<NodeSelector> exclude;                          // stay in floating point, whatever a rule says
  std::vector<NodeSelector> only;     // quantization in part: no other node is quantized; empty: whom the rules choose
  std::vector<NodeSelector> inputs;   // read quantized inputs although no rule says so
  std::vector<LayerOptions> layers;   // settings for some of them
  std::vector<QdqCase> cases;         // of a program (passes/quantize_model.h); `exclude` counts more, rules less
  bool only_cases = false;            // nothing but what the cases quantize
  bool weights_per_tensor = false;    // one scale for all output channels, as TAO's QAT has it
  bool unsigned_activations = false;  // u8 (0 .. 255) for tensors that cannot be negative; false: s8 everywhere
  // Codes from the smallest to the largest value, with a zero point that calibration finds: u8 with
  // unsigned_activations (of the target, too), else s8. The rule tfmot has it by itself. Nothing: those of tensors that
  // are hardly negative, for targets that take zero points at no cost.
  std::optional<bool> asymmetric_activations = std::nullopt;
  int64_t activation_bits = 8, weight_bits = 8;  // 2 to 8 a code, which takes a byte all the same
  int64_t outer_bits =
      8;  // weighted nodes without another above or below them have at least as many, and what they read
  bool quantize_input = true;        // false: nothing reads a quantized graph input, so first layers stay float
  bool quantize_first_layer = true;  // weighted nodes without a weighted node above them
  bool quantize_last_layer = true;   // weighted nodes without a weighted node below them
  bool unify_concat = false;         // one scale for all inputs and the output of a quantized Concat (no requantizing)
};

// Who reads a quantized tensor.
struct QuantizedUse {
  ir::Node* node;
  size_t input;
};

// One FakeQuantize to be.
struct PlacedQuantizer {
  ir::Value* value;  // what is quantized: an activation, or a constant weight
  std::vector<QuantizedUse> uses;
  std::optional<int> axis;  // weights: the output channel's; nothing: one scale
  int qmin = -128, qmax = 127;
  std::string reason;       // of its first use: "input of Conv 'conv1'"
  std::string scale_group;  // quantizers with the same non-empty group share one scale
  bool asymmetric = false;  // calibration finds a zero point, too
  bool output = false;      // the graph gives out the quantized tensor instead of `value`
  bool relu6 = false;       // the Relu that makes `value` becomes ReLU6 (rule tao)

  // That of `value` in the graph with quantizers, where that of an output belongs to the quantized tensor.
  std::string value_name(const ir::Graph& graph) const;
};

// The quantizers for `graph` in the order of its nodes; does not change it. Requires inferred types. UserError for a
// graph that is quantized already, and (exit 2) for a selector that selects no node, for contradicting ones, and for
// unsigned or asymmetric activations where the target refuses them.
std::vector<PlacedQuantizer> plan_placement(const ir::Graph& graph, const PlacementOptions& options = {});

// What `options.layers` say of the calibration of these quantizers.
LayerCalibration layer_calibration(const ir::Graph& graph, const PlacementOptions& options,
                                   const std::vector<PlacedQuantizer>& plan);

// One line each: "layer1.0.relu1  s8 per tensor  -> Conv 'layer1.0.conv2'".
std::string placement_text(const std::vector<PlacedQuantizer>& plan);

}  // namespace octet::quant
