#include "quant/options.h"

#include "schema/schema.h"

namespace octet::quant {

OCTET_ENUM_NAMES(Heads, {Heads::kAuto, "auto"}, {Heads::kInt8, "int8"}, {Heads::kFloat, "float"})

OCTET_ENUM_NAMES(Equalization, {Equalization::kNo, "no"}, {Equalization::kExact, "exact"},
                 {Equalization::kRelaxed, "relaxed"})

void describe(schema::Section& s, QuantOptions& quant) {
  s.choice("enable_qat", quant.enable_qat, {{std::nullopt, "auto"}, {true, "true"}, {false, "false"}})
      .help(
          "true: `octet train` without --stage trains the model given by -m, or by model.pretrained with load_graph, "
          "quantization-aware (stage qat), and calibrates it first where it is a float model. false: stage qat "
          "is refused. auto: without --stage the float network is trained.");
  s.field("heads", quant.heads)
      .help(
          "Convolutions and products with no other behind them: the outputs of a detector, the last product of a "
          "classifier. auto: float for detectnet_v2, as in TAO, else int8.");
  s.field("equalize", quant.equalize)
      .help(
          "Cross-layer equalization of channels before calibration, where one scale serves channels of very different "
          "ranges. exact: by powers of two, so that the float network computes the same bits. relaxed: also through "
          "ReLU6, which becomes ReLU.");
  s.field("bias_correction", quant.bias_correction)
      .help(
          "After calibration, on the same images: what quantization moves the mean of a channel by is taken out of its "
          "bias.");
  s.field("target", quant.placement.target)
      .help(
          "For whose kernels quantizers are placed, in calibration and so in training. any: Octet's engine, TensorRT, "
          "OpenVINO. onnxruntime: its CPU kernels, which want the results of convolutions and both operands of "
          "residual sums quantized, and u8 behind ReLU. openvino: u8 behind ReLU. tensorrt: as any, and u8 is "
          "refused.");
  s.section("calibration", quant.calibration).help("Collecting ranges of the float model.");
  s.section("activations", [&](schema::Section& activations) {
     activations.field("averaging_constant", quant.averaging.activations)
         .range(0, 1)
         .help("c of scale = (1 - c) * scale + c * scale of the batch during QAT. 0: calibrated scales stay frozen.");
     activations.choice("unsigned", quant.placement.unsigned_activations, {{false, "no"}, {true, "auto"}})
         .help(
             "auto: tensors that cannot be negative use 0..255, one bit more precision on CPUs; TensorRT takes no such "
             "tensors.");
   }).help("Quantization of activations: symmetric, one scale a tensor.");
  s.section("weights", [&](schema::Section& weights) {
     weights.field("averaging_constant", quant.averaging.weights)
         .range(0, 1)
         .help("As for activations. 1: scales follow the weights.");
     weights.field("method", quant.weights.method)
         .help("Scale of each output channel: largest magnitude, or the least squared error.");
     weights.choice("granularity", quant.placement.weights_per_tensor, {{false, "channel"}, {true, "tensor"}})
         .written_when([&quant] { return quant.placement.weights_per_tensor; })
         .help("A scale for each output channel, or one for all, which loses accuracy: as TAO's QAT has it.");
   }).help("Quantization of weights: symmetric.");
  s.field("rules", quant.placement.rules)
      .length(1, 16)
      .help("Where fake quantization is placed; auto looks at the graph.");
  const auto selectors = [&](const char* key, std::vector<NodeSelector>& nodes, const char* help) {
    s.list(key, nodes).shorthand("name").length(0, 10'000).help(help);
    s.rule(key, [&nodes]() -> std::string {
      for (const NodeSelector& selector : nodes)
        if (std::string problem = problem_of(selector); !problem.empty()) return problem;
      return "";
    });
  };
  selectors("exclude", quant.placement.exclude,
            "What stays in floating point, as in [\"head/*\", {op: Sigmoid}, {chain: Conv > Sigmoid}].");
  selectors("only", quant.placement.only,
            "Quantization in part: nothing but these, as far as the rules quantize them. Empty: all.");
  selectors("inputs", quant.placement.inputs, "Nodes whose inputs are quantized although no rule says so.");
}

}  // namespace octet::quant
