// Types of all values from those of the graph's inputs.
#pragma once
#include "ir/graph.h"

namespace octet::ir {

// Checks the number of inputs and outputs of one node and runs its shape rule. UserError names the node.
void infer_node(Node& node);

// The types that infer_node() would give the outputs (an empty one for those that are absent), without changing them.
std::vector<TensorType> inferred_types(const Node& node);

// UserError for an input whose declared dimensions are none, or too large.
void check_inputs(const Graph& graph);

// Runs every node's shape rule in execution order. UserError names the first node that does not fit.
void infer_shapes(Graph& graph);

// Sets the leading (batch) dimension of every graph input (kDynamic makes it dynamic again) and infers again.
// UserError for an input without dimensions.
void set_batch(Graph& graph, int64_t batch);

// Spatial geometry of a Conv or pooling node with attributes completed (defaults filled in, auto_pad resolved).
struct WindowGeometry {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> pads;  // begin of every axis, then end of every axis
};
// Both arguments are spatial dimensions. UserError for impossible values, and for auto_pad on a dynamic axis whose
// stride is above 1 (its padding depends on the size).
WindowGeometry window_geometry(const Node& node, const std::vector<int64_t>& input_spatial,
                               const std::vector<int64_t>& kernel_spatial);
// Output size of one axis; kDynamic in, kDynamic out. With ceil_mode the last window still starts inside of the input
// or its leading padding, as in PyTorch and ONNX Runtime. UserError when the window is larger than the padded input.
int64_t window_output(int64_t input, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad_begin,
                      int64_t pad_end, bool ceil_mode);

}  // namespace octet::ir
