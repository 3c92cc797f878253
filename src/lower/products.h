// Products of two activations on codes: MatMul with a quantizer before each factor, as attention has it.
#pragma once
#include <string>

#include "ir/graph.h"
#include "lower/plan_builder.h"

namespace octet::lower {

// A MatMul of rank 3 or 4 whose factors come from quantizers with one scale each, with as many matrices on both sides
// and sums that fit an int32. Requires types.
bool is_int8_product(const ir::Node& node);

// A quantizer that only such products read, if anything does: its codes are rows of a matrix, of any rank, and it stays
// where it is.
bool feeds_products(const ir::Node& quantizer);

// Where the floats of a value lie: behind Transpose, Split, Slice and Reshape that need no copy, in an earlier value.
struct FloatView {
  const ir::Value* source;
  int64_t offset = 0;
  std::vector<int64_t> strides;  // one for each axis of the value
};
FloatView float_view(const ir::Value* value);

// The floats from which the codes of a factor are made: those of its view, or what a Softmax reads whose result nobody
// else does.
const ir::Value* floats_of_factor(const ir::Graph& graph, const ir::Value* factor);

// Adds the steps of `node`, an int8 product, and of its factors' codes: the floats of these are there.
void emit_int8_product(PlanBuilder& b, const ir::Graph& graph, const ir::Node& node);

}  // namespace octet::lower
