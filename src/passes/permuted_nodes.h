// Operators on tensors that are held with their axes in another order: t is held as Transpose(t, order). One rule an
// operator; what has none here needs its tensors as they are.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace octet::passes {

using Order = std::vector<int64_t>;  // each of 0 .. rank - 1 once

Order inverse(const Order& order);
// Transpose(second) of Transpose(first).
Order compose(const Order& first, const Order& second);
bool is_identity(const Order& order);
// Only axes of one element change places, so that the elements stay in their order: a Reshape does the same.
bool moves_nothing(const ir::Shape& shape, const Order& order);

// The inputs whose elements have places: not the limits of a Clip or the pads of a Pad.
size_t placed_inputs(const ir::Node& node);

// A constant, or one behind a quantizer of one scale: it can be put in any order.
bool is_fixed_operand(const ir::Value* value);

// Whether all tensors that the node reads and makes can be held in another order, the same for all: element-wise
// operators, FakeQuantize, Concat, Split, Slice, Pad, Expand, reductions that keep their axes, Softmax, ArgMax, and a
// Resize along axes 0 or 1, which engines only have behind them. Requires types.
bool can_permute(const ir::Node& node);
// Changes attributes and constants (those that others read, too, in a copy), so that it computes on tensors held so;
// setting the inputs, and inferring the types anew, is for the caller.
void permute_node(ir::Graph& graph, ir::Node* node, const Order& order);

// The order in which the output is held where input 0 is, of an operator that takes axes out (a reduction without
// keepdims, Squeeze), or ends the order (Flatten or Reshape before a product whose weights can be put in the order of
// its rows: the output is a matrix as it was). Nothing for all others.
std::optional<Order> order_behind(const ir::Graph& graph, const ir::Node& node, const Order& order);
// Changes such a node for an input that is held in `order`.
void permute_reader(ir::Graph& graph, ir::Node* node, const Order& order);

}  // namespace octet::passes
