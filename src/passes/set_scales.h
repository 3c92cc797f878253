// Gives FakeQuantize nodes their scales: those of activations from calibration, those of weights from the weights.
#pragma once
#include <map>
#include <string>

#include "ir/graph.h"
#include "quant/observer.h"
#include "quant/weight_calibrator.h"

namespace octet::passes {

// Precondition: a graph with FakeQuantize nodes; `ranges` by the names of the tensors that they read (activations
// only). What: scale = scale_from_amax(amax, qmax - zero point), the largest where several quantizers share the
// constant; of asymmetric ones scale and zero point of [max(min, -amax), min(max, amax)], the union of all that share
// them; scales of weights by quant::weight_scales. A tensor that was always zero gets scale 1, with a warning.
// State: frozen. UserError naming the tensor when an activation has no range. Test: tests/passes/set_scales_test.cc.
// Returns the number of quantizers.
int set_scales(ir::Graph& graph, const std::map<std::string, quant::Range>& ranges,
               const quant::WeightCalibrationOptions& weights = {});

// Scales of weights follow the weights: scale = (1 - c) * scale + c * quant::weight_scales, in float32. c = 1: those of
// the weights as they are (after QAT, before export); c = 0: nothing changes.
void refresh_weight_scales(ir::Graph& graph, float averaging_constant = 1.0f,
                           const quant::WeightCalibrationOptions& weights = {});

}  // namespace octet::passes
