#include "passes/cancel_transposes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "ir/axes.h"
#include "ir/infer.h"
#include "ir/query.h"
#include "passes/free_batch.h"
#include "passes/layout_groups.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

bool is_transpose(const Node* node) {
  return node && node->kind == OpKind::kTranspose && node->input(0)->type.shape;
}

// The sizes of a Reshape to `shape` from a tensor with the same batch; nothing where they cannot be said.
std::optional<std::vector<int64_t>> reshape_target(const ir::Shape& from, const ir::Shape& shape) {
  std::vector<int64_t> out = shape;
  bool open = false;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == 0) return std::nullopt;
    if (out[i] > 0) continue;
    if (from[i] == ir::kDynamic && i == 0)
      out[i] = 0;
    else if (std::exchange(open, true))
      return std::nullopt;
  }
  return out;
}

// Transpose(value, order) or what does the same, before `before`. Its output is called `name`.
Value* add_transpose(Graph& graph, Value* value, const ir::Shape& shape, const Order& order, const std::string& name,
                     Node* before) {
  const std::string node_name = graph.find_node(name) ? graph.unique_name(name + "/transpose") : name;
  if (moves_nothing(shape, order)) {
    ir::Shape moved;
    for (const int64_t axis : order) moved.push_back(shape.at(static_cast<size_t>(axis)));
    if (const auto target = reshape_target(shape, moved)) {
      Value* sizes = graph.add_constant(graph.unique_name(name + "/shape"),
                                        ir::Tensor::of<int64_t>({static_cast<int64_t>(target->size())}, *target));
      return graph.add_node(OpKind::kReshape, node_name, {value, sizes}, {name}, {}, before)->output();
    }
  }
  return graph.add_node(OpKind::kTranspose, node_name, {value}, {name}, {{"perm", order}}, before)->output();
}

// Transpose chains: merges two into one, removes those that change nothing, makes Reshapes of those that could be.
bool simplify(Graph& graph, Node* node) {
  if (!is_transpose(node)) return false;
  Node* above = node->input(0)->producer;
  if (is_transpose(above)) {
    node->attributes["perm"] = compose(order_of(*above), order_of(*node));
    graph.set_input(node, 0, above->input(0));
    if (above->output()->users.empty() && !graph.is_output(above->output())) graph.erase(above);
    if (is_identity(order_of(*node))) bypass(graph, node, node->input(0));
    return true;
  }
  return is_identity(order_of(*node)) && bypass(graph, node, node->input(0));
}

bool could_be_reshape(const Node* node) {
  return is_transpose(node) && !node->input(0)->is_constant() && node->output()->type.shape &&
         moves_nothing(*node->input(0)->type.shape, order_of(*node));
}

// Transposes that move nothing as long as the batch is the one image of the file. They stay: a Reshape in their place
// would not say where the images go, and nobody could free the batch any more.
std::set<std::string> those_that_move_images(const Graph& graph) {
  std::set<std::string> out;
  for (const auto& node : graph.nodes())
    if (could_be_reshape(node.get())) out.insert(node->name);
  if (out.empty()) return out;
  Graph freed = graph.clone();
  if (!free_batch(freed)) return {};
  std::erase_if(out, [&](const std::string& name) { return could_be_reshape(freed.find_node(name)); });
  return out;
}

void make_reshape(Graph& graph, Node* node) {
  const auto target = reshape_target(*node->input(0)->type.shape, *node->output()->type.shape);
  if (!target) return;
  const std::string name = graph.unique_name(node->name + "/shape");
  Value* sizes = graph.add_constant(name, ir::Tensor::of<int64_t>({static_cast<int64_t>(target->size())}, *target));
  node->kind = OpKind::kReshape;
  node->attributes.clear();
  node->inputs.push_back(nullptr);
  graph.set_input(node, 1, sizes);
}

// Holds the tensors of a group in the order that was chosen.
class Regrouping {
 public:
  Regrouping(Graph& graph, const LayoutGroup& group, Order order)
      : graph_(graph), group_(group), order_(std::move(order)) {}

  void run() {
    for (Node* node : group_.permutable()) {
      Order own;
      for (size_t i = 0; i < placed_inputs(*node) && own.empty(); ++i)
        if (const auto* t = group_.find(node->input(i))) own = held(*t);
      permute_node(graph_, node, own);
    }
    for (const LayoutGroup::Tensor& t : group_.tensors()) {
      for (Node* reader : t.inside)
        if (reader->kind != OpKind::kTranspose) replace(reader, t.value, value_held(t));
      for (Node* reader : t.outside) give_outside(t, reader);
      if (graph_.is_output(t.value)) keep_output(t);
    }
    graph_.remove_dead();
    ir::infer_shapes(graph_);
  }

 private:
  Order held(const LayoutGroup::Tensor& t) const { return LayoutGroup::held(t, order_); }

  static Value* source_of(const LayoutGroup::Tensor& t) { return t.value->producer->input(0); }

  Node* behind(const Value* value) const {
    if (value->producer) return graph_.next(value->producer);
    return graph_.nodes().empty() ? nullptr : graph_.nodes().front().get();
  }

  // The value of the graph that holds the tensor in its new order.
  Value* value_held(const LayoutGroup::Tensor& t) {
    if (t.maker == LayoutGroup::Maker::kTranspose) return value_held(*group_.find(source_of(t)));
    if (t.maker == LayoutGroup::Maker::kPermutable || is_identity(held(t))) return t.value;
    Value*& made = turned_[{t.value, held(t)}];
    if (!made)
      made = add_transpose(graph_, t.value, t.shape, held(t), graph_.unique_name(t.value->name + "/transpose"),
                           behind(t.value));
    return made;
  }

  // ... and as it is in the file.
  Value* value_as_it_is(const LayoutGroup::Tensor& t) {
    const bool stays = t.maker == LayoutGroup::Maker::kTranspose && graph_.is_output(t.value);
    if (t.maker == LayoutGroup::Maker::kOther || stays) return t.value;
    Value* in = value_held(t);
    const Order own = held(t);
    if (is_identity(own)) return in;
    Value*& made = turned_[{in, inverse(own)}];
    if (!made) {
      ir::Shape shape;
      for (const int64_t axis : own) shape.push_back(t.shape.at(static_cast<size_t>(axis)));
      made =
          add_transpose(graph_, in, shape, inverse(own), graph_.unique_name(t.value->name + "/transpose"), behind(in));
    }
    return made;
  }

  void replace(Node* reader, const Value* from, Value* to) {
    for (size_t i = 0; i < reader->inputs.size(); ++i)
      if (reader->input(i) == from) graph_.set_input(reader, i, to);
  }

  void give_outside(const LayoutGroup::Tensor& t, Node* reader) {
    const Order own = held(t);
    const bool as_it_is = t.maker == LayoutGroup::Maker::kOther || is_identity(own);
    const auto order = as_it_is ? std::nullopt : order_behind(graph_, *reader, own);
    if (!order) return replace(reader, t.value, value_as_it_is(t));
    Value* y = reader->output();
    const ir::Shape shape = *y->type.shape;
    permute_reader(graph_, reader, own);
    replace(reader, t.value, value_held(t));
    if (is_identity(*order)) return;
    // Its readers go on with what it was.
    ir::Shape moved;
    for (const int64_t axis : *order) moved.push_back(shape.at(static_cast<size_t>(axis)));
    const bool output = graph_.is_output(y);
    const std::string name = y->name;
    if (output) graph_.rename(y, graph_.unique_name(name + "/moved"));
    Value* back = add_transpose(graph_, y, moved, inverse(*order),
                                output ? name : graph_.unique_name(name + "/transpose"), graph_.next(reader));
    graph_.replace_uses(y, back, /*keep_outputs=*/false, back->producer);
  }

  // Outputs of the graph stay as they are, with their name.
  void keep_output(const LayoutGroup::Tensor& t) {
    if (t.maker == LayoutGroup::Maker::kOther) return;
    if (t.maker == LayoutGroup::Maker::kTranspose) {  // the Transpose that makes it stays
      graph_.set_input(t.value->producer, 0, value_held(t));
      t.value->producer->attributes["perm"] = inverse(held(t));
      return;
    }
    if (is_identity(held(t))) return;
    const std::string name = t.value->name;
    Value* out = value_as_it_is(t);
    graph_.rename(t.value, graph_.unique_name(name + "/moved"));
    for (size_t i = 0; i < graph_.outputs().size(); ++i)
      if (graph_.outputs()[i] == t.value) graph_.set_output_value(i, out);
    graph_.rename(out, name);
  }

  Graph& graph_;
  const LayoutGroup& group_;
  const Order order_;
  std::map<std::pair<Value*, Order>, Value*> turned_;
};

int count_transposes(const Graph& graph) {
  int n = 0;
  for (const auto& node : graph.nodes()) n += node->kind == OpKind::kTranspose;
  return n;
}

void merge_chains(Graph& graph) {
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<std::string> names;  // nodes may be erased under an iterator
    for (const auto& node : graph.nodes())
      if (is_transpose(node.get())) names.push_back(node->name);
    for (const std::string& name : names)
      if (Node* node = graph.find_node(name)) changed |= simplify(graph, node);
  }
  graph.remove_dead();
}

}  // namespace

int cancel_transposes(Graph& graph) {
  const int before = count_transposes(graph);
  if (before == 0) return 0;
  merge_chains(graph);
  // Each Transpose belongs to one group; those of a group that has changed are gone or new, and are not asked again.
  std::vector<std::string> names;
  for (const auto& node : graph.nodes())
    if (is_transpose(node.get()) && !node->input(0)->is_constant()) names.push_back(node->name);
  std::set<std::string> done;
  for (const std::string& name : names) {
    Node* node = graph.find_node(name);
    if (!node || !is_transpose(node) || done.count(name)) continue;
    const LayoutGroup group(graph, node);
    for (const Node* each : group.transposes()) done.insert(each->name);
    if (const auto order = group.better_order()) Regrouping(graph, group, *order).run();
  }
  merge_chains(graph);
  const std::set<std::string> kept = those_that_move_images(graph);
  for (Node* node : ir::node_list(graph))
    if (could_be_reshape(node) && !kept.count(node->name)) make_reshape(graph, node);
  return before - count_transposes(graph);
}

}  // namespace octet::passes
