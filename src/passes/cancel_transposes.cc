#include "passes/cancel_transposes.h"

#include <algorithm>
#include <set>

#include "ir/axes.h"
#include "ir/infer.h"
#include "ir/traits.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;
using Perm = std::vector<int64_t>;

bool is_transpose(const Node* node) {
  return node && node->kind == OpKind::kTranspose && node->input(0)->type.shape;
}

Perm perm_of(const Node& transpose) {
  return ir::permutation_of(transpose, transpose.input(0)->type.shape->size());
}

bool is_identity(const Perm& perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return true;
}

// Transpose(second) of Transpose(first).
Perm compose(const Perm& first, const Perm& second) {
  Perm out;
  for (const int64_t i : second) out.push_back(first.at(static_cast<size_t>(i)));
  return out;
}

// A Transpose may go from its inputs to its output: each element of the result has its place, or (Concat) its axis.
bool lets_transpose_pass(const Node& node) {
  return node.info().has(ir::trait::kElementwise) || node.kind == OpKind::kConcat;
}

// The inputs whose elements have places: the slopes of a PRelu, too. Clip's limits are scalars whatever the layout.
size_t placed_inputs(const Node& node) {
  return node.kind == OpKind::kClip ? 1 : node.inputs.size();
}

// Transpose chains: merges two into one, removes those that change nothing.
bool simplify(Graph& graph, Node* node) {
  if (!is_transpose(node)) return false;
  Node* above = node->input(0)->producer;
  if (is_transpose(above)) {
    node->attributes["perm"] = compose(perm_of(*above), perm_of(*node));
    graph.set_input(node, 0, above->input(0));
    if (above->output()->users.empty() && !graph.is_output(above->output())) graph.erase(above);
    if (is_identity(perm_of(*node))) bypass(graph, node, node->input(0));
    return true;
  }
  return is_identity(perm_of(*node)) && bypass(graph, node, node->input(0));
}

// A constant operand of an output of `rank` dimensions, as it has to be before the transposition.
Value* transposed_constant(Graph& graph, Value* constant, const Perm& perm) {
  const ir::Shape& shape = constant->constant->shape();
  ir::Shape full(perm.size() - shape.size(), 1);
  full.insert(full.end(), shape.begin(), shape.end());
  ir::Shape before(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) before[static_cast<size_t>(perm[d])] = full[d];
  // Only a vector along one axis: its elements keep their order.
  ir::Tensor tensor = ir::Tensor::of<float>(before, constant->constant->to_floats());
  if (constant->users.size() > 1 || graph.is_output(constant))
    return graph.add_constant(graph.unique_name(constant->name + "/transposed"), std::move(tensor),
                              constant->trainable);
  constant->type = {tensor.data_type(), tensor.shape()};
  constant->constant = std::move(tensor);
  return constant;
}

bool can_transpose_constant(const Value& constant, size_t rank) {
  const ir::Shape& shape = constant.constant->shape();
  if (constant.type.data_type != ir::DataType::kFloat32 || shape.size() > rank) return false;
  return std::count_if(shape.begin(), shape.end(), [](int64_t d) { return d != 1; }) <= 1;
}

// All users would let a Transpose pass, or end it.
bool vanishes(const Graph& graph, const Node& transpose) {
  const auto& users = transpose.output()->users;
  return !graph.is_output(transpose.output()) && std::all_of(users.begin(), users.end(), [](const Node* u) {
    return lets_transpose_pass(*u) || u->kind == OpKind::kTranspose;
  });
}

// op(T(a), T(b), constant) -> T(op(a, b, constant')).
bool sink(Graph& graph, Node* node) {
  if (!lets_transpose_pass(*node) || node->outputs.size() != 1 || !node->output()->type.shape) return false;
  if (graph.is_output(node->output())) return false;  // keeps its layout
  const size_t rank = node->output()->type.shape->size(), n = placed_inputs(*node);
  std::set<Node*> transposes;
  Perm perm;
  for (size_t i = 0; i < n; ++i) {
    const Value* v = node->input(i);
    if (!v) return false;
    if (v->is_constant()) {
      if (node->kind == OpKind::kConcat || !can_transpose_constant(*v, rank)) return false;
      continue;
    }
    if (!is_transpose(v->producer) || v->type.shape->size() != rank || !vanishes(graph, *v->producer)) return false;
    const Perm own = perm_of(*v->producer);
    if (!perm.empty() && own != perm) return false;
    perm = own;
    transposes.insert(v->producer);
  }
  if (transposes.empty()) return false;
  for (size_t i = 0; i < n; ++i) {
    Value* v = node->input(i);
    graph.set_input(node, i, v->is_constant() ? transposed_constant(graph, v, perm) : v->producer->input(0));
  }
  if (node->kind == OpKind::kConcat) {
    node->attributes["axis"] = perm.at(ir::normal_axis(*node, node->get_int("axis"), rank));
  }
  for (Node* t : transposes)
    if (t->output()->users.empty()) graph.erase(t);
  ir::infer_node(*node);
  Value* y = node->output();
  const std::vector<Node*> readers = y->users;
  // The next node in execution order, if any, is where the Transpose goes.
  const auto& nodes = graph.nodes();
  auto at = std::find_if(nodes.begin(), nodes.end(), [&](const auto& other) { return other.get() == node; });
  Node* next = ++at == nodes.end() ? nullptr : at->get();
  const std::string name = graph.unique_name(y->name + "/transpose");
  Node* moved = graph.add_node(OpKind::kTranspose, name, {y}, {name}, {{"perm", perm}}, next);
  ir::infer_node(*moved);
  for (Node* reader : std::set<Node*>(readers.begin(), readers.end()))
    for (size_t i = 0; i < reader->inputs.size(); ++i)
      if (reader->input(i) == y) graph.set_input(reader, i, moved->output());
  return true;
}

int count_transposes(const Graph& graph) {
  int n = 0;
  for (const auto& node : graph.nodes()) n += node->kind == OpKind::kTranspose;
  return n;
}

}  // namespace

int cancel_transposes(Graph& graph) {
  const int before = count_transposes(graph);
  if (before == 0) return 0;
  // Every round moves a Transpose towards the outputs or takes one out, so there is an end; nodes may be erased under
  // an iterator, so each round walks over a copy of names.
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<std::string> names;
    for (const auto& node : graph.nodes()) names.push_back(node->name);
    for (const std::string& name : names)
      if (Node* node = graph.find_node(name)) changed |= simplify(graph, node) || sink(graph, node);
    graph.remove_dead();
  }
  return before - count_transposes(graph);
}

}  // namespace octet::passes
