// Questions that everything asks that reads or changes a graph: who reads a value, what lies behind quantizers, what
// number is a constant. Questions about kinds of operators are in traits.h, those about axes in axes.h.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace octet::ir {

// One node reads the value, once, and it is no output of the graph: what makes it may be fused with what reads it, or
// changed for its sake. False for nullptr.
bool single_use(const Graph& graph, const Value* value);
// That node, or nullptr.
Node* only_reader(const Graph& graph, const Value* value);

// The nodes in execution order as they are now, to walk over while the graph changes.
std::vector<Node*> node_list(const Graph& graph);

// A FakeQuantize. False for nullptr.
bool is_quantizer(const Node* node);
// Of a FakeQuantize with constant zero points: signed codes around zero.
bool has_symmetric_codes(const Node& quantizer);
// The value before any FakeQuantize nodes that it went through; nullptr for nullptr.
const Value* behind_quantizers(const Value* value);
// The node that makes it, seen through FakeQuantize; nullptr for inputs, constants and nullptr.
Node* source(const Value* value);
// The constant that it is, quantized or not; nullptr where it depends on an input of the graph, and for nullptr.
const Value* constant_behind(const Value* value);

// Of a value whose rank is known.
inline const Shape& shape_of(const Value* value) {
  return *value->type.shape;
}
inline size_t rank_of(const Value* value) {
  return shape_of(value).size();
}

// The number that a constant of one element holds; nothing for other values and nullptr.
std::optional<float> scalar(const Value* value);

}  // namespace octet::ir
