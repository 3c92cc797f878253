// Scales of quantizers become parameters of a training.
#pragma once
#include "ir/graph.h"
#include "quant/scale_training.h"

namespace octet::passes {

// Precondition: calibrated quantizers. What: the state of those of activations and of weights becomes learned (LSQ),
// offset (LSQ+, which trains zero points, too; none is shared by several scales then) or clip (PACT), as `training`
// wants it, and frozen where it wants none. Only their gradients differ. Returns how many scales are trained. Test:
// tests/passes/train_scales_test.cc.
int train_scales(ir::Graph& graph, const quant::ScaleTraining& training);

}  // namespace octet::passes
