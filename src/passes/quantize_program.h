// Quantizes the products behind the plan: the heads of two-stage detectors, on as many regions as come up in a run.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "quant/observer.h"
#include "quant/options.h"

namespace octet::passes {

// The tensors of graph.program that its products read and that calibration has to watch, by name: of Conv, of
// ConvTranspose whose windows touch, of Gemm and MatMul, with constant weights, outside of branches and Loops, which
// `options` do not leave in float. They are quantized per tensor to s8, their weights per output channel. Empty where
// there is no program, and where other widths than 8 bits are asked for.
std::vector<std::string> quantized_program_tensors(const ir::Graph& graph, const quant::PlacementOptions& options);

// Puts these products into QDQ form; those whose tensor is not in `ranges` (no image got so far) stay in float. Returns
// how many quantizers of activations there are. Test: tests/passes/quantize_program_test.cc.
int quantize_program(ir::Graph& graph, const std::map<std::string, quant::Range>& ranges,
                     const quant::PlacementOptions& options, const quant::WeightCalibrationOptions& weights);

}  // namespace octet::passes
