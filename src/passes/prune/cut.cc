#include "passes/prune/cut.h"

#include <algorithm>
#include <cstring>

#include "ir/axes.h"
#include "ir/infer.h"
#include "ir/query.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using ir::Value;

// The elements of a tensor at some indices of one axis.
Tensor selected(const Tensor& x, size_t axis, const std::vector<int64_t>& kept) {
  Shape shape = x.shape();
  size_t run = ir::data_type_size(x.data_type()), rows = 1;  // bytes of an index; how often the axis is walked
  for (size_t d = axis + 1; d < shape.size(); ++d) run *= static_cast<size_t>(shape[d]);
  for (size_t d = 0; d < axis; ++d) rows *= static_cast<size_t>(shape[d]);
  const size_t row = run * static_cast<size_t>(shape[axis]);
  std::vector<std::byte> out(rows * run * kept.size());
  if (out.empty()) rows = 0;  // nor are there addresses to copy from and to
  std::byte* to = out.data();
  for (size_t r = 0; r < rows; ++r)
    for (const int64_t i : kept) {
      std::memcpy(to, x.bytes().data() + r * row + static_cast<size_t>(i) * run, run);
      to += run;
    }
  shape[axis] = static_cast<int64_t>(kept.size());
  return Tensor(x.data_type(), std::move(shape), std::move(out));
}

class Cutter {
 public:
  Cutter(const Graph& whole, const KeptIndices& kept) : whole_(whole), kept_(kept), graph_(whole.clone()) {}

  Graph run() {
    for (const Value* v : whole_.constants()) {
      const auto axes = kept_.find(v->name);
      if (axes == kept_.end()) continue;
      Tensor tensor = *v->constant;
      for (const auto& [axis, kept] : axes->second) tensor = selected(tensor, axis, kept);
      graph_.set_constant(graph_.find_value(v->name), std::move(tensor));
    }
    for (const auto& node : whole_.nodes()) restate_sizes(*node);
    graph_.remove_dead();
    ir::infer_shapes(graph_);
    for (const Value* v : graph_.values())
      if (const Value* before = whole_.find_value(v->name); before != nullptr && before->producer != nullptr)
        OCTET_CHECK(v->type.shape == shape_after(before), "pruned '", v->name, "' is ", type_string(v->type));
    return std::move(graph_);
  }

 private:
  const std::vector<int64_t>* kept(const Value* v, size_t axis) const {
    const auto axes = kept_.find(v->name);
    if (axes == kept_.end()) return nullptr;
    const auto found = axes->second.find(axis);
    return found == axes->second.end() ? nullptr : &found->second;
  }
  int64_t size_after(const Value* v, size_t axis) const {
    const std::vector<int64_t>* indices = kept(v, axis);
    return indices != nullptr ? static_cast<int64_t>(indices->size()) : (*v->type.shape)[axis];
  }
  std::optional<Shape> shape_after(const Value* v) const {
    if (!v->type.shape) return std::nullopt;
    Shape out = *v->type.shape;
    for (size_t axis = 0; axis < out.size(); ++axis) out[axis] = size_after(v, axis);
    return out;
  }
  bool changes(const Value* v) const { return kept_.count(v->name) > 0; }

  // What no constant's shape says: numbers in attributes and in constants.
  void restate_sizes(const Node& before) {
    Node* node = graph_.find_node(before.name);
    const Value *x = before.input(0), *y = before.output();
    switch (before.kind) {
      case OpKind::kConv:
        if (changes(x)) node->attributes["group"] = size_after(x, 1) / size_after(before.input(1), 1);
        break;
      case OpKind::kConvTranspose:
        if (changes(y)) node->attributes["group"] = size_after(y, 1) / size_after(before.input(1), 1);
        break;
      case OpKind::kReshape:
        if (changes(x) || changes(y)) restate_target(before, node);
        break;
      case OpKind::kExpand:
        if (changes(y)) restate_target(before, node);
        break;
      case OpKind::kResize:
        if (changes(y) && before.has_input(3)) restate_resized(before, node);
        break;
      case OpKind::kSplit:
        if (changes(x)) restate_pieces(before, node);
        break;
      case OpKind::kSlice:
        if (changes(x)) restate_range(before, node);
        break;
      default:
        break;
    }
  }

  std::vector<int64_t> ints(const Node& before, size_t input) const { return before.input(input)->constant->to_ints(); }
  // In a constant of its own where others read the one that is there.
  void put(const Node& before, Node* node, size_t input, const std::vector<int64_t>& values) {
    Tensor tensor = Tensor::of<int64_t>({std::ssize(values)}, values);
    if (const Value* old = before.input(input); old != nullptr && old->type.data_type == ir::DataType::kInt32)
      tensor = Tensor::of<int32_t>({std::ssize(values)}, std::vector<int32_t>(values.begin(), values.end()));
    Value* there = node->input(input);
    if (there != nullptr && single_use(graph_, there)) return graph_.set_constant(there, std::move(tensor));
    const std::string name = graph_.unique_name(there != nullptr ? there->name : node->name + ".sizes");
    graph_.set_input(node, input, graph_.add_constant(name, std::move(tensor)));
  }

  // Open entries (-1) and those of axes that stay remain; a copied size (0) is stated where it is no longer that of x.
  // Of Reshape and of Expand, whose list may be shorter than the shape.
  void restate_target(const Node& before, Node* node) {
    const Value *x = before.input(0), *y = before.output();
    std::vector<int64_t> target = ints(before, 1);
    const size_t skipped = y->type.shape->size() - target.size();
    for (size_t i = 0; i < target.size(); ++i) {
      const size_t axis = i + skipped;
      if (target[i] == -1 || (target[i] == 1 && before.kind == OpKind::kExpand)) continue;
      if (kept(y, axis) != nullptr || (target[i] == 0 && kept(x, i) != nullptr)) target[i] = size_after(y, axis);
    }
    put(before, node, 1, target);
  }
  void restate_resized(const Node& before, Node* node) {
    const Value* y = before.output();
    std::vector<int64_t> sizes = ints(before, 3);
    const std::vector<int64_t> stated = before.get_ints("axes");
    const std::vector<size_t> axes =
        ir::normal_axes(before, stated.empty() ? ir::all_axes(sizes.size()) : stated, y->type.shape->size());
    for (size_t k = 0; k < axes.size(); ++k)
      if (kept(y, axes[k]) != nullptr) sizes[k] = size_after(y, axes[k]);
    put(before, node, 3, sizes);
  }
  // They may be of different sizes now.
  void restate_pieces(const Node& before, Node* node) {
    const Value* x = before.input(0);
    const size_t axis = ir::normal_axis(before, before.get_int("axis", 0), x->type.shape->size());
    if (kept(x, axis) == nullptr) return;
    std::vector<int64_t> sizes;
    for (const Value* piece : before.outputs) sizes.push_back(size_after(piece, axis));
    node->attributes.erase("num_outputs");
    put(before, node, 1, sizes);
  }
  void restate_range(const Node& before, Node* node) {
    const Value *x = before.input(0), *y = before.output();
    std::vector<int64_t> starts = ints(before, 1), ends = ints(before, 2);
    const std::vector<int64_t> given = before.has_input(3) ? ints(before, 3) : ir::all_axes(starts.size());
    const std::vector<size_t> axes = ir::normal_axes(before, given, x->type.shape->size());
    for (size_t k = 0; k < axes.size(); ++k) {
      const std::vector<int64_t>* indices = kept(x, axes[k]);
      if (indices == nullptr) continue;
      const int64_t size = (*x->type.shape)[axes[k]];
      const int64_t first = std::clamp<int64_t>(starts[k] < 0 ? std::max(starts[k], -size) + size : starts[k], 0, size);
      starts[k] = std::lower_bound(indices->begin(), indices->end(), first) - indices->begin();
      ends[k] = starts[k] + size_after(y, axes[k]);
    }
    put(before, node, 1, starts);
    put(before, node, 2, ends);
  }

  const Graph& whole_;
  const KeptIndices& kept_;
  Graph graph_;
};

}  // namespace

Graph cut_channels(const Graph& graph, const KeptIndices& kept) {
  return Cutter(graph, kept).run();
}

Graph mask_channels(const Graph& graph, const KeptIndices& kept) {
  Graph out = graph.clone();
  for (Node* node : node_list(out)) {
    if (!node->info().has(ir::trait::kWeighted)) continue;
    const auto axes = kept.find(node->input(0)->name);
    if (axes == kept.end()) continue;
    for (const auto& [axis, stay] : axes->second) {
      const Shape& shape = *node->input(0)->type.shape;
      std::vector<float> ones(static_cast<size_t>(shape[axis]), 0.0f);
      for (const int64_t i : stay) ones[static_cast<size_t>(i)] = 1.0f;
      Shape mask(shape.size() - axis, 1);
      mask[0] = shape[axis];
      const std::string name = out.unique_name(node->name + "/mask");
      Value* constant = out.add_constant(name, Tensor::of<float>(mask, ones));
      out.set_input(
          node, 0,
          out.add(OpKind::kMul, out.unique_name(node->name + "/masked"), {node->input(0), constant}, {}, node));
    }
  }
  ir::infer_shapes(out);
  return out;
}

}  // namespace octet::passes
