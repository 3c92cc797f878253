#include "passes/permuted_nodes.h"

#include <algorithm>

#include "base/error.h"
#include "ir/axes.h"
#include "ir/evaluate.h"
#include "ir/query.h"
#include "ir/traits.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using ir::Value;
using Ints = std::vector<int64_t>;

bool is_reduction(OpKind kind) {
  return kind == OpKind::kReduceMean || kind == OpKind::kReduceSum || kind == OpKind::kReduceMax ||
         kind == OpKind::kArgMax;
}

// One axis, an attribute with this default.
std::optional<int64_t> default_axis(OpKind kind) {
  switch (kind) {
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
      return -1;
    case OpKind::kSplit:
    case OpKind::kArgMax:
    case OpKind::kConcat:
      return 0;
    case OpKind::kFakeQuantize:
      return 1;
    default:
      return std::nullopt;
  }
}

bool constant_from(const Node& node, size_t first) {
  for (size_t i = first; i < node.inputs.size(); ++i)
    if (node.inputs[i] && !node.inputs[i]->is_constant()) return false;
  return true;
}

Ints ints_of(const Value* constant) {
  return constant->constant->to_ints();
}

// The axes of a reduction or a Squeeze; nothing where they are not said, or not known. A reduction's list of none says
// nothing: it means all axes, or none.
std::optional<Ints> listed_axes(const Node& node) {
  if (node.kind == OpKind::kArgMax) return Ints{node.get_int("axis", 0)};
  std::optional<Ints> axes;
  if (node.has("axes"))
    axes = node.get_ints("axes");
  else if (node.has_input(1) && node.input(1)->is_constant())
    axes = ints_of(node.input(1));
  if (axes && axes->empty() && is_reduction(node.kind)) axes.reset();
  return axes;
}

// The scales of a Resize change the size of these axes.
bool resizes_only_behind_the_channels(const Node& node) {
  const Shape &x = *node.input(0)->type.shape, &y = *node.output()->type.shape;
  for (size_t i = 0; i < std::min<size_t>(2, x.size()); ++i)
    if (x[i] != y[i]) return false;
  return true;
}

bool has_rule(const Node& node) {
  switch (node.kind) {
    case OpKind::kConcat:
    case OpKind::kCast:
      return true;
    case OpKind::kSplit:
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
    case OpKind::kFakeQuantize:
    case OpKind::kSlice:
    case OpKind::kPad:
    case OpKind::kExpand:
      return constant_from(node, 1);
    case OpKind::kDropout:
      return constant_from(node, 1) && (!node.output(1) || node.output(1)->users.empty());
    case OpKind::kReduceMean:
    case OpKind::kReduceSum:
    case OpKind::kReduceMax:
    case OpKind::kArgMax:
      return node.get_int("keepdims", 1) == 1 && listed_axes(node);
    case OpKind::kResize:
      return constant_from(node, 1) && (!node.has_input(1) || node.input(1)->constant->size() == 0) &&
             !resizes_only_behind_the_channels(node);
    default:
      return node.info().has(ir::trait::kElementwise) && node.outputs.size() == 1;
  }
}

Tensor evaluated(OpKind kind, ir::Attributes attributes, const std::vector<const Tensor*>& inputs) {
  Value result;
  Node node;
  node.kind = kind;
  node.name = "constant";
  node.attributes = std::move(attributes);
  node.outputs = {&result};
  ir::MemoryBudget budget;
  auto values = ir::evaluate(node, inputs, budget);
  OCTET_CHECK(values && values->size() == 1, "a constant that cannot be moved");
  return std::move(values->front());
}

Tensor transposed(const Tensor& tensor, const Order& order) {
  return evaluated(OpKind::kTranspose, {{"perm", order}}, {&tensor});
}

Tensor reshaped(const Tensor& tensor, const Shape& shape) {
  const Tensor wanted = Tensor::of<int64_t>({static_cast<int64_t>(shape.size())}, shape);
  return evaluated(OpKind::kReshape, {}, {&tensor, &wanted});
}

// Puts another tensor into input `i` of the node; other readers of the constant keep theirs.
void set_transposed(Graph& graph, Node* node, size_t i, Tensor tensor) {
  Value* constant = node->input(i);
  if (constant->users.size() == 1 && !graph.is_output(constant)) return graph.set_constant(constant, std::move(tensor));
  graph.set_input(
      node, i,
      graph.add_constant(graph.unique_name(constant->name + "/transposed"), std::move(tensor), constant->trainable));
}

void replace_ints(Graph& graph, Node* node, size_t i, const Ints& values) {
  const Tensor tensor = Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
  if (i < node->inputs.size() && node->inputs[i]) return set_transposed(graph, node, i, tensor);
  while (node->inputs.size() <= i) node->inputs.push_back(nullptr);
  graph.set_input(node, i, graph.add_constant(graph.unique_name(node->name + "/axes"), tensor));
}

// A constant operand of a tensor of as many axes as `order` has.
void permute_operand(Graph& graph, Node* node, size_t i, const Order& order) {
  if (Node* quantizer = node->input(i)->producer) {
    if (!ir::single_use(graph, node->input(i))) {
      const std::string name = graph.unique_name(node->input(i)->name + "/transposed");
      quantizer = graph.add_node(quantizer->kind, name, quantizer->inputs, {name}, quantizer->attributes, node);
      graph.set_input(node, i, quantizer->output());
    }
    return permute_operand(graph, quantizer, 0, order);
  }
  const Tensor& own = *node->input(i)->constant;
  if (own.size() == 1 && own.shape().size() <= order.size()) return;
  Shape full(order.size() - own.shape().size(), 1);
  full.insert(full.end(), own.shape().begin(), own.shape().end());
  set_transposed(graph, node, i, transposed(reshaped(own, full), order));
}

// One number an axis.
template <typename T>
std::vector<T> in_order(const std::vector<T>& of_axes, const Order& order) {
  std::vector<T> out;
  for (const int64_t axis : order) out.push_back(of_axes.at(static_cast<size_t>(axis)));
  return out;
}

Ints mapped_axes(const Node& node, const Ints& axes, const Order& order) {
  const Order places = inverse(order);
  Ints out;
  for (const int64_t axis : axes) out.push_back(places.at(ir::normal_axis(node, axis, order.size())));
  return out;
}

// Axes of a reduction or a Squeeze, wherever it has them.
void map_listed_axes(Graph& graph, Node* node, const Order& order) {
  const Ints axes = mapped_axes(*node, *listed_axes(*node), order);
  if (node->kind == OpKind::kArgMax)
    node->attributes["axis"] = axes[0];
  else if (node->has("axes"))
    node->attributes["axes"] = axes;
  else
    replace_ints(graph, node, 1, axes);
}

void permute_pads(Graph& graph, Node* node, const Order& order) {
  if (node->has_input(3)) return replace_ints(graph, node, 3, mapped_axes(*node, ints_of(node->input(3)), order));
  const Ints pads = ints_of(node->input(1));
  const auto half = static_cast<int64_t>(order.size());
  Ints out = in_order(Ints(pads.begin(), pads.begin() + half), order);
  const Ints ends = in_order(Ints(pads.begin() + half, pads.end()), order);
  out.insert(out.end(), ends.begin(), ends.end());
  replace_ints(graph, node, 1, out);
}

void permute_slice(Graph& graph, Node* node, const Order& order) {
  const Ints axes = node->has_input(3) ? ints_of(node->input(3))
                                       : ir::all_axes(static_cast<size_t>(node->input(1)->constant->size()));
  replace_ints(graph, node, 3, mapped_axes(*node, axes, order));
}

void permute_expand(Graph& graph, Node* node, const Order& order) {
  Ints shape = ints_of(node->input(1));
  shape.insert(shape.begin(), order.size() - shape.size(), 1);
  replace_ints(graph, node, 1, in_order(shape, order));
}

void permute_resize(Graph& graph, Node* node, const Order& order) {
  if (node->has("axes")) {
    node->attributes["axes"] = mapped_axes(*node, node->get_ints("axes"), order);
    return;
  }
  if (node->has_input(2) && node->input(2)->constant->size() > 0) {
    const std::vector<float> scales = in_order(node->input(2)->constant->to_floats(), order);
    set_transposed(graph, node, 2, Tensor::of<float>({static_cast<int64_t>(scales.size())}, scales));
  }
  if (node->has_input(3)) replace_ints(graph, node, 3, in_order(ints_of(node->input(3)), order));
}

// What becomes of the elements of `value`, a matrix, before a product with constant weights: nothing that knows places.
struct Product {
  Node* node = nullptr;
  Value* weights = nullptr;  // constant, [rows, n] or (transposed) [n, rows]
  bool transposed = false;
};
std::optional<Product> product_behind(const Graph& graph, const Value* value) {
  for (;;) {
    Node* reader = ir::only_reader(graph, value);
    if (!reader || reader->input(0) != value) return std::nullopt;
    if (reader->kind == OpKind::kGemm || reader->kind == OpKind::kMatMul) {
      if (reader->get_int("transA") != 0) return std::nullopt;
      Value* weights = reader->input(1);
      const Node* quantizer = weights->producer;
      if (ir::is_quantizer(quantizer)) {
        const bool one_scale = quantizer->input(1)->is_constant() && quantizer->input(1)->constant->size() == 1;
        const bool of_columns = quantizer->get_int("axis", 1) == (reader->get_int("transB") != 0 ? 0 : 1);
        if (!ir::single_use(graph, weights) || !(one_scale || of_columns)) return std::nullopt;
        weights = quantizer->input(0);
      }
      if (!weights->is_constant() || !ir::single_use(graph, weights) || weights->constant->shape().size() != 2)
        return std::nullopt;
      return Product{reader, weights, reader->get_int("transB") != 0};
    }
    const bool one_by_one =
        reader->info().has(ir::trait::kElementwise) || ir::is_quantizer(reader) || reader->kind == OpKind::kDropout;
    if (!one_by_one || !reader->output()) return std::nullopt;
    for (size_t i = 1; i < reader->inputs.size(); ++i)
      if (reader->inputs[i] && (!reader->inputs[i]->is_constant() || reader->inputs[i]->constant->size() != 1))
        return std::nullopt;
    value = reader->output();
  }
}

// [N, A, B, C] -> [N, A * B * C].
bool makes_rows(const Node& node) {
  if (node.kind != OpKind::kFlatten && node.kind != OpKind::kReshape) return false;
  const auto &x = node.input(0)->type.shape, &y = node.output()->type.shape;
  if (!x || !y || x->size() < 2 || y->size() != 2 || (*x)[0] != (*y)[0]) return false;
  int64_t count = 1;
  for (size_t i = 1; i < x->size(); ++i) {
    if ((*x)[i] <= 0) return false;
    count *= (*x)[i];
  }
  if (count != (*y)[1]) return false;
  if (node.kind == OpKind::kFlatten) return true;
  return node.input(1)->is_constant() && node.input(1)->constant->size() == 2 && ints_of(node.input(1))[1] != 0;
}

}  // namespace

Order inverse(const Order& order) {
  Order out(order.size());
  for (size_t i = 0; i < order.size(); ++i) out.at(static_cast<size_t>(order[i])) = static_cast<int64_t>(i);
  return out;
}

Order compose(const Order& first, const Order& second) {
  return in_order(first, second);
}

bool is_identity(const Order& order) {
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int64_t>(i)) return false;
  return true;
}

bool moves_nothing(const Shape& shape, const Order& order) {
  int64_t last = -1;
  for (const int64_t axis : order) {
    if (shape.at(static_cast<size_t>(axis)) == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

bool is_fixed_operand(const Value* value) {
  if (value->is_constant() || !ir::is_quantizer(value->producer)) return value->is_constant();
  const Node& quantizer = *value->producer;
  return quantizer.input(0)->is_constant() && quantizer.input(1)->is_constant() &&
         quantizer.input(1)->constant->size() == 1;
}

size_t placed_inputs(const Node& node) {
  if (node.kind == OpKind::kConcat) return node.inputs.size();
  const bool elementwise = node.info().has(ir::trait::kElementwise);
  return elementwise && node.kind != OpKind::kClip ? node.inputs.size() : 1;
}

bool can_permute(const Node& node) {
  if (node.outputs.empty() || !node.output()) return false;
  const auto& shape = node.output()->type.shape;
  if (!shape || shape->size() < 2) return false;
  bool data = false;
  for (size_t i = 0; i < placed_inputs(node); ++i) {
    const Value* v = node.input(i);
    if (!v || !v->type.shape) return false;
    const bool fixed = is_fixed_operand(v);
    data |= !fixed;
    if (fixed && node.kind != OpKind::kConcat ? rank_of(v) > shape->size() : rank_of(v) != shape->size()) return false;
  }
  for (const Value* out : node.outputs)
    if (out && node.kind != OpKind::kDropout && (!out->type.shape || rank_of(out) != shape->size())) return false;
  return data && has_rule(node);
}

void permute_node(Graph& graph, Node* node, const Order& order) {
  if (is_identity(order)) return;
  for (size_t i = 0; i < placed_inputs(*node); ++i)
    if (is_fixed_operand(node->input(i))) permute_operand(graph, node, i, order);
  switch (node->kind) {
    case OpKind::kPad:
      return permute_pads(graph, node, order);
    case OpKind::kSlice:
      return permute_slice(graph, node, order);
    case OpKind::kExpand:
      return permute_expand(graph, node, order);
    case OpKind::kResize:
      return permute_resize(graph, node, order);
    case OpKind::kFakeQuantize:
      if (node->input(1)->constant->size() == 1) return;  // its axis says nothing
      break;
    default:
      break;
  }
  if (is_reduction(node->kind)) return map_listed_axes(graph, node, order);
  if (const auto axis = default_axis(node->kind))
    node->attributes["axis"] = mapped_axes(*node, {node->get_int("axis", *axis)}, order)[0];
}

std::optional<Order> order_behind(const Graph& graph, const Node& node, const Order& order) {
  if (makes_rows(node) && order[0] == 0 && product_behind(graph, node.output())) return Order{0, 1};
  const bool removes = (is_reduction(node.kind) && node.get_int("keepdims", 1) == 0) || node.kind == OpKind::kSqueeze;
  if (!removes || !node.output()->type.shape) return std::nullopt;
  const std::optional<Ints> axes = listed_axes(node);
  if (!axes) return std::nullopt;
  std::vector<bool> gone(order.size());
  for (const int64_t axis : *axes) gone[ir::normal_axis(node, axis, order.size())] = true;
  Ints left(order.size(), 0);  // the place of an axis among those that stay
  for (size_t i = 0, n = 0; i < order.size(); ++i) left[i] = static_cast<int64_t>(gone[i] ? n : n++);
  Order out;
  for (const int64_t axis : order)
    if (!gone[static_cast<size_t>(axis)]) out.push_back(left[static_cast<size_t>(axis)]);
  return out;
}

void permute_reader(Graph& graph, Node* node, const Order& order) {
  if (!makes_rows(*node)) return map_listed_axes(graph, node, order);
  const std::optional<Product> product = product_behind(graph, node->output());
  OCTET_CHECK(product, "'", node->name, "' is before no product");
  const Tensor& own = *product->weights->constant;
  const Shape& matrix = own.shape();
  const Shape& x = *node->input(0)->type.shape;
  // The rows as the axes that they come from: [A, B, C, n] or [n, A, B, C].
  Shape apart(x.begin() + 1, x.end());
  Order moved;
  if (product->transposed) {
    apart.insert(apart.begin(), matrix[0]);
    moved = order;
  } else {
    apart.push_back(matrix[1]);
    for (size_t i = 1; i < order.size(); ++i) moved.push_back(order[i] - 1);
    moved.push_back(static_cast<int64_t>(order.size()) - 1);
  }
  graph.set_constant(product->weights, reshaped(transposed(reshaped(own, apart), moved), matrix));
}

}  // namespace octet::passes
