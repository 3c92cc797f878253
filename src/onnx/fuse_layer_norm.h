// Layer normalization that a file writes by its formula, as exporters did before opset 17, becomes LayerNormalization:
// its scale and shift are then learned in training, and the engine has one step for it.
#pragma once
#include "ir/graph.h"

namespace octet::onnx {

// (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + shift, with means over the last axes, a scale constant of
// just these axes and, if any, a shift of the same shape. The last node of the formula becomes the operator and keeps
// its name; nodes that nobody reads any more stay for Graph::remove_dead(). Returns how many.
int fuse_layer_norm(ir::Graph& graph);

}  // namespace octet::onnx
