// Float steps: what a graph leaves in FP32.
#pragma once
#include <functional>
#include <string>

#include "lower/plan_builder.h"
#include "lower/weighted.h"

namespace octet::lower {

// A node and its inputs as floats. UserError for an operator, or a variant of one, that the engine does not have.
void emit_float(PlanBuilder& builder, const ir::Node& node);
// An element-wise function of x; the output is that of `node`.
void emit_unary(PlanBuilder& builder, const ir::Node& node, const ir::Value* x, const UnaryFunction& function);
// A chain with its clamps and residual; the output is `value`.
void emit_float_chain(PlanBuilder& builder, const Chain& chain, const ir::Value* value);
// Nodes that only move floats about: Reshape, Transpose, Concat, Split, Slice, Pad, Expand, DepthToSpace.
// False when `node` is none of them.
bool emit_float_move(PlanBuilder& builder, const ir::Node& node);

// Matrix products, and nodes that work on lines along axes: Softmax, LayerNormalization, ArgMax, Reduce*. False for
// other nodes.
bool emit_float_lines(PlanBuilder& builder, const ir::Node& node);
// LayerNormalization; `define_output` makes the buffer of its result, dense floats or rows of codes.
void emit_layer_norm(PlanBuilder& builder, const ir::Node& node, const std::function<int()>& define_output);
// Softmax along the last axis, whose result is the codes of the quantizer behind it, as rows.
void emit_softmax_rows(PlanBuilder& builder, const ir::Node& node, int codes);
// UserError: the engine has no kernel for this.
[[noreturn]] void unsupported(const ir::Node& node, const std::string& what);

// Numbers of a convolution step.
void write_geometry(engine::Step& step, const kernels::ConvGeometry& geometry);
void write_window(engine::Step& step, const ir::Node& node);  // of a pooling node
// Source rows or columns of a Resize: the two neighbors of every output and the weight of the second (0 for nearest).
struct ResizeAxis {
  std::vector<int32_t> low, high;
  std::vector<float> weight;
};
ResizeAxis resize_axis(const ir::Node& node, size_t dimension);
// Of cubic mode: four pixels for every output, those beside the image in the place of the nearest on it.
struct CubicAxis {
  std::vector<int32_t> index;
  std::vector<float> weight;
};
inline constexpr int64_t kCubicTaps = 4;
CubicAxis cubic_axis(const ir::Node& node, size_t dimension);
// Scale or size given to Resize changes only the image axes, and its mode is one that the engine has; else UserError.
void check_resize(const ir::Node& node);

}  // namespace octet::lower
