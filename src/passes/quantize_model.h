// Quantization of a network from a program, in one call: full or in part, with settings for layers and cases of one's
// own. The command line does the same by the keys of `quant` (quant/options.h).
//
//   // A gate and what it scales, which no rule knows: both inputs of the product are quantized.
//   const quant::QdqCase gate = quant::case_of_chain("gate", "Tanh > Mul", {{.link = 1, .input = 0}, {.link = 1, .input
//   = 1}}); ir::Graph quantized = passes::quantize_model(network, passes::QuantizationMode::kFull,
//                                                {.layers = {{.nodes = {.name = "head/*"}, .quantize_input = false,
//                                                             .quantize_weight = false}}},
//                                                {gate});
//
// Its quantizers observe. quant::CalibrationSet collects what they see, and passes::set_scales gives them their scales.
#pragma once
#include <vector>

#include "ir/graph.h"
#include "quant/placement.h"

namespace octet::passes {

enum class QuantizationMode {
  kFull,     // as the rules say, but for the layers of the specification
  kPartial,  // nothing but the layers of the specification and the cases
};

// What is quantized of the nodes that `nodes` selects, whatever the rules say.
struct LayerQuantization {
  quant::NodeSelector nodes;
  bool quantize_input = true, quantize_weight = true;
  // Of nodes with several activations (Add, Concat, Mul): which of them; empty: all.
  std::vector<size_t> inputs = {};
};

struct QuantizationSpec {
  std::vector<LayerQuantization> layers;
  quant::PlacementOptions placement;  // rules, bits, target ...
};

// A quantized copy of a float `graph` with inferred types: batch norms folded, FakeQuantize nodes placed. Of a node
// that both the specification and a case name the specification decides; `placement.exclude` decides over both.
// UserError (exit 2): kPartial without layers and cases; a selector that selects no node (with the nearest name); an
// input that a selected node does not have. Test: tests/passes/quantize_model_test.cc.
ir::Graph quantize_model(const ir::Graph& graph, QuantizationMode mode = QuantizationMode::kFull,
                         const QuantizationSpec& spec = {}, const std::vector<quant::QdqCase>& cases = {});

}  // namespace octet::passes
