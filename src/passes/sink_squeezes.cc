#include "passes/sink_squeezes.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "ir/axes.h"
#include "ir/infer.h"
#include "ir/query.h"
#include "ir/traits.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using ir::Value;

// The axes that a Squeeze takes out of its input, or an Unsqueeze puts into its output, ascending. Nothing for other
// nodes, and where they are not stated.
std::optional<std::vector<size_t>> axes_of(const Node* node) {
  if (node == nullptr || (node->kind != OpKind::kSqueeze && node->kind != OpKind::kUnsqueeze)) return std::nullopt;
  const Value* image = node->kind == OpKind::kSqueeze ? node->input(0) : node->output();
  if (!image->type.shape || !node->has_input(1) || !node->input(1)->is_constant()) return std::nullopt;
  std::vector<size_t> axes = ir::normal_axes(*node, node->input(1)->constant->to_ints(), image->type.shape->size());
  std::sort(axes.begin(), axes.end());
  return axes;
}

std::optional<std::vector<size_t>> squeezed_axes(const Value* value) {
  const Node* node = value->producer;
  return node != nullptr && node->kind == OpKind::kSqueeze ? axes_of(node) : std::nullopt;
}

class Sinking {
 public:
  explicit Sinking(Graph& graph) : graph_(graph) {}

  int run() {
    int canceled = 0;
    for (Node* node : ir::node_list(graph_)) {
      if (node->kind == OpKind::kUnsqueeze)
        canceled += cancels(*node) && bypass(graph_, node, node->input(0)->producer->input(0));
      else if (const auto axes = common_axes(*node))
        sink(node, *axes);
    }
    graph_.remove_dead();
    return canceled;
  }

 private:
  static bool cancels(const Node& unsqueeze) {
    const auto axes = axes_of(&unsqueeze), before = squeezed_axes(unsqueeze.input(0));
    return axes && before && *axes == *before;
  }

  // Of the Squeezes that make all data that an operator reads which may as well come before them, if one of these is a
  // convolution's.
  std::optional<std::vector<size_t>> common_axes(const Node& node) const {
    const bool normalizes = node.kind == OpKind::kBatchNormalization;
    if (node.outputs.size() != 1 || node.inputs.empty() || node.kind == OpKind::kIdentity) return std::nullopt;
    if (!normalizes && !ir::is_quantizer(&node) && !node.info().has(ir::trait::kElementwise)) return std::nullopt;
    std::optional<std::vector<size_t>> axes;
    std::optional<size_t> rank;
    bool convolved = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value* in = node.input(i);
      if (in == nullptr) continue;
      if (in->is_constant()) {
        if (ir::is_quantizer(&node) && in->constant->size() != 1) return std::nullopt;  // a scale for each channel
        continue;
      }
      const auto own = squeezed_axes(in);
      if (!own || (axes && (*own != *axes || ir::rank_of(in) != *rank))) return std::nullopt;
      axes = own, rank = ir::rank_of(in);
      const Node* maker = in->producer->input(0)->producer;
      convolved |= made_.count(in->producer) > 0 || (maker != nullptr && maker->info().has(ir::trait::kWeighted));
    }
    if (!axes || axes->empty() || !convolved || !node.output()->type.shape) return std::nullopt;
    if (ir::rank_of(node.output()) != *rank) return std::nullopt;
    if (normalizes && axes->front() < 2) return std::nullopt;  // the channels are axis 1 before and behind
    return axes;
  }

  // A constant of one element for each index of some axes, which broadcasts as before.
  Value* with_axes(Value* constant, const std::vector<size_t>& axes, size_t rank) {
    if (constant->constant->size() == 1 && constant->constant->shape().size() <= rank) return constant;
    Shape shape = constant->constant->shape();
    shape.insert(shape.begin(), rank - shape.size(), 1);
    for (const size_t axis : axes) shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
    return graph_.add_constant(graph_.unique_name(constant->name + "/unsqueezed"),
                               constant->constant->with_shape(shape), constant->trainable);
  }

  void sink(Node* node, const std::vector<size_t>& axes) {
    const size_t rank = ir::rank_of(node->output());
    Value* list = nullptr;
    const bool broadcasts = node->info().has(ir::trait::kElementwise) && !ir::is_quantizer(node);
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      Value* in = node->input(i);
      if (in == nullptr) continue;
      if (!in->is_constant())
        list = in->producer->input(1), graph_.set_input(node, i, in->producer->input(0));
      else if (broadcasts)
        graph_.set_input(node, i, with_axes(in, axes, rank));
    }
    Value* result = node->output();
    const std::string name = result->name;
    graph_.rename(result, graph_.unique_name(name + "/unsqueezed"));
    ir::infer_node(*node);
    Node* squeeze = graph_.add_node(OpKind::kSqueeze, graph_.unique_name(name + "/squeeze"), {result, list}, {name}, {},
                                    graph_.next(node));
    ir::infer_node(*squeeze);
    graph_.replace_uses(result, squeeze->output(), /*keep_outputs=*/false, squeeze);
    made_.insert(squeeze);
  }

  Graph& graph_;
  std::unordered_set<const Node*> made_;
};

}  // namespace

int sink_squeezes(Graph& graph) {
  return Sinking(graph).run();
}

}  // namespace octet::passes
