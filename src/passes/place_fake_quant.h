// Puts FakeQuantize nodes where the rules of quant/placement.h want them, and takes them away.
#pragma once
#include <vector>

#include "ir/graph.h"
#include "quant/placement.h"

namespace octet::passes {

// Precondition: inferred types, no FakeQuantize in the graph; batch norms folded where they can be.
// What: one FakeQuantize for each tensor of quant::plan_placement, read by the uses that it names; all other readers
// and the graph's outputs keep the float tensor. For a tensor "t": node and output "t/fake_quantize", constants
// "t/scale" (all 1; one element for each output channel of weights) and "t/zero_point" (0, int8 or uint8; of asymmetric
// ones another number, until calibration finds it). A quantizer that makes an output of the graph has the output's
// name, and what it reads becomes "t/float". Relus that are to be ReLU6 become Clips. Quantizers that have to share a
// scale share the constants, named after the group. State: observing. A target other than `any` is named in the
// metadata (quant::kTargetKey). Returns how many were placed. Test: tests/passes/place_fake_quant_test.cc.
int place_fake_quant(ir::Graph& graph, const quant::PlacementOptions& options = {});
// With the plan that these options give for this graph.
int place_fake_quant(ir::Graph& graph, const quant::PlacementOptions& options,
                     const std::vector<quant::PlacedQuantizer>& plan);

// Takes every FakeQuantize out: back to the float graph, whose outputs keep their names. (An Identity stays where the
// name of an output has no other node: the quantizer read a graph input or another output.) Returns how many.
int remove_fake_quant(ir::Graph& graph);

}  // namespace octet::passes
