#include "quant/options.h"

#include <algorithm>

#include "schema/schema.h"

namespace octet::quant {

OCTET_ENUM_NAMES(Heads, {Heads::kAuto, "auto"}, {Heads::kInt8, "int8"}, {Heads::kFloat, "float"})

OCTET_ENUM_NAMES(QatMode, {QatMode::kFuseBn, "fuse_bn"}, {QatMode::kWithBn, "with_bn"})

OCTET_ENUM_NAMES(ScaleGradient, {ScaleGradient::kNo, "no"}, {ScaleGradient::kLsq, "lsq"},
                 {ScaleGradient::kLsqPlus, "lsq_plus"}, {ScaleGradient::kPact, "pact"})

OCTET_ENUM_NAMES(Equalization, {Equalization::kNo, "no"}, {Equalization::kExact, "exact"},
                 {Equalization::kUnreached, "unreached"}, {Equalization::kRelaxed, "relaxed"})

OCTET_ENUM_NAMES(BiasCorrection, {BiasCorrection::kNo, "no"}, {BiasCorrection::kEmpirical, "empirical"},
                 {BiasCorrection::kAnalytic, "analytic"})

void describe(schema::Section& s, QuantOptions& quant) {
  const auto describe_bits = [](schema::Section& section, int64_t& bits) {
    const int64_t* value = &bits;
    section.field("bits", bits)
        .range(2, 8)
        .written_when([value] { return *value != 8; })
        .help(
            "Bits of a code. The engine computes fewer than 8 as it computes 8, with the bits of the trained graph and "
            "no "
            "faster: to find out what a network would lose.");
  };
  s.choice("enable_qat", quant.enable_qat, {{std::nullopt, "auto"}, {true, "true"}, {false, "false"}})
      .help(
          "true: `octet train` without --stage trains the model given by -m, or by model.pretrained with load_graph, "
          "quantization-aware (stage qat), and calibrates it first where it is a float model. false: stage qat "
          "is refused. auto: without --stage the float network is trained.");
  s.field("qat_mode", quant.qat_mode)
      .written_when([&quant] { return quant.qat_mode != QatMode::kFuseBn; })
      .help(
          "Batch norms behind layers: fuse_bn folds them before calibration. with_bn lets them train on in stage qat, "
          "behind quantized weights, and folds them at its end, which changes no code; for networks whose float "
          "training has not converged.");
  s.field("heads", quant.heads)
      .help(
          "Convolutions and products with no other behind them: the outputs of a detector, the last product of a "
          "classifier. auto: float for detectnet_v2, as in TAO, but for rules: [dla]; else int8.");
  s.field("equalize", quant.equalize)
      .help(
          "Cross-layer equalization of channels before calibration, where one scale serves channels of very different "
          "ranges. exact: by powers of two, so that the float network computes the same bits. unreached: also through "
          "ReLU6 that no image of the calibration takes to its end; it becomes ReLU. relaxed: through every ReLU6.");
  s.choice("bias_correction", quant.bias_correction,
           {{BiasCorrection::kNo, "no"},
            {BiasCorrection::kEmpirical, "empirical"},
            {BiasCorrection::kAnalytic, "analytic"},
            {BiasCorrection::kNo, "false"},
            {BiasCorrection::kEmpirical, "true"}})
      .help(
          "After calibration: what quantization moves the mean of a channel by is taken out of its bias. empirical (or "
          "true): as the images of the calibration show it, for weights and activations. analytic: for weights, by the "
          "means that the batch norms of the float network state, without images.");
  s.section("adaround", quant.adaround)
      .written_when([&quant] { return quant.adaround.iterations > 0; })
      .help("Adaptive rounding of weights after calibration, by what each layer gives.");
  s.section("gptq", quant.gptq)
      .written_when([&quant] { return quant.gptq.images > 0; })
      .help(
          "Rounding of weights after calibration that makes up for its own error in each layer: nearly what adaround "
          "gives, in a tenth of its time.");
  s.field("target", quant.placement.target)
      .help(
          "For whose kernels quantizers are placed, in calibration and so in training. any: Octet's engine, TensorRT, "
          "OpenVINO. onnxruntime: its CPU kernels, which want the results of convolutions and both operands of "
          "residual sums quantized, and u8 behind ReLU. openvino: u8 behind ReLU. tensorrt: as any, and u8 is "
          "refused.");
  s.field("outer_bits", quant.placement.outer_bits)
      .range(2, 8)
      .written_when([&quant] { return quant.placement.outer_bits != 8; })
      .help("Bits of the first and the last layers, and of what they read, where that is more than bits say.");
  s.section("calibration", quant.calibration).help("Collecting ranges of the float model.");
  s.section("activations", [&](schema::Section& activations) {
     activations.field("averaging_constant", quant.averaging.activations)
         .range(0, 1)
         .help("c of scale = (1 - c) * scale + c * scale of the batch during QAT. 0: calibrated scales stay frozen.");
     activations.field("learned", quant.training.activations)
         .written_when([&quant] { return quant.training.activations != ScaleGradient::kNo; })
         .help(
             "Stage qat trains the scales: lsq by what rounding and clipping cost, lsq_plus the zero points, too, pact "
             "by what clipping costs alone; they begin as calibrated. Worth it below 8 bits. no: averaging_constant "
             "says what they do.");
     describe_bits(activations, quant.placement.activation_bits);
     activations.choice("unsigned", quant.placement.unsigned_activations, {{false, "no"}, {true, "auto"}})
         .help(
             "auto: tensors that cannot be negative use 0..255, one bit more precision on CPUs; TensorRT takes no such "
             "tensors.");
     activations
         .choice("asymmetric", quant.placement.asymmetric_activations,
                 {{std::nullopt, "auto"}, {false, "no"}, {true, "yes"}})
         .written_when([&quant] { return quant.placement.asymmetric_activations.has_value(); })
         .help(
             "yes: codes reach from the least to the largest value, with a zero point that calibration finds; for "
             "CPUs, as TensorRT takes zero points of 0 alone. auto: tensors behind Swish, GELU and the like, which "
             "reach hardly below zero, where the target is openvino or onnxruntime.");
     activations.rule("learned", [&quant]() -> std::string {
       const bool moves = quant.training.activations == ScaleGradient::kLsqPlus;
       return moves && !quant.placement.asymmetric_activations.value_or(false)
                  ? "is lsq_plus, which moves zero points; say asymmetric: yes beside it, or lsq"
                  : "";
     });
   }).help("Quantization of activations: one scale a tensor.");
  s.section("weights", [&](schema::Section& weights) {
     weights.field("averaging_constant", quant.averaging.weights)
         .range(0, 1)
         .help("As for activations. 1: scales follow the weights.");
     weights.field("learned", quant.training.weights)
         .written_when([&quant] { return quant.training.weights != ScaleGradient::kNo; })
         .help("As for activations, by lsq; averaging_constant means nothing then.");
     weights.rule("learned", [&quant]() -> std::string {
       if (quant.training.weights == ScaleGradient::kPact) return "is pact, which clips activations; use lsq";
       return quant.training.weights == ScaleGradient::kLsqPlus ? "is lsq_plus, and weights are symmetric; use lsq"
                                                                : "";
     });
     describe_bits(weights, quant.placement.weight_bits);
     weights.field("method", quant.weights.method)
         .help("Scale of each output channel: largest magnitude, or the least squared error.");
     weights.choice("granularity", quant.placement.weights_per_tensor, {{false, "channel"}, {true, "tensor"}})
         .written_when([&quant] { return quant.placement.weights_per_tensor; })
         .help("A scale for each output channel, or one for all, which loses accuracy: as TAO's QAT has it.");
   }).help("Quantization of weights: symmetric.");
  s.field("rules", quant.placement.rules)
      .length(1, 16)
      .help(
          "Where fake quantization is placed; auto looks at the graph. tao: as NVIDIA TAO's QAT, with ReLU6 for ReLU. "
          "dla: every tensor has a range. tfmot: as TensorFlow's toolkit, behind layers and asymmetric.");
  s.rule("equalize", [&quant]() -> std::string {
    const auto& rules = quant.placement.rules;
    const bool tao = std::find(rules.begin(), rules.end(), PlacementRule::kTao) != rules.end();
    return tao && quant.equalize != Equalization::kNo
               ? "scales channels that the ReLU6 of rules: [tao] would then cut off elsewhere; leave one of them out"
               : "";
  });
  s.rule("bias_correction", [&quant]() -> std::string {
    return quant.bias_correction == BiasCorrection::kAnalytic && quant.rounds_by_results()
               ? "analytic takes out what adaround and gptq avoid; leave one of them out, or take empirical"
               : "";
  });
  s.rule("gptq", [&quant]() -> std::string {
    return quant.gptq.images > 0 && quant.adaround.iterations > 0
               ? "rounds the weights that adaround rounds; leave one of them out"
               : "";
  });
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
  s.list("layers", quant.placement.layers)
      .length(0, 10'000)
      .written_when([&quant] { return !quant.placement.layers.empty(); })
      .help(
          "Settings for some layers alone, as in [{name: \"head/*\", method: max, weight_bits: 6}]; of entries that "
          "select the same layer the first that says something counts.");
}

}  // namespace octet::quant
