#include "quant/lint_placement.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "ir/query.h"
#include "ir/traits.h"
#include "quant/fusion_model.h"

namespace octet::quant {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

constexpr const char* kIssueNames[] = {"float_layer",     "float_pool",         "split_add",
                                       "float_residual",  "float_island",       "concat_requantizes",
                                       "quantized_twice", "per_tensor_weights", "not_calibrated"};

std::string text(const Node& node) {
  return str(node.info().name, " '", node.name, "'");
}

class Linter {
 public:
  explicit Linter(const Graph& graph) : graph_(graph) {}

  std::vector<PlacementNote> run() {
    const auto& nodes = graph_.nodes();
    if (std::none_of(nodes.begin(), nodes.end(), [](const auto& n) { return is_quantizer(n.get()); })) return {};
    for (const auto& node : nodes) mark(*node);
    find_islands();
    for (const auto& node : nodes) check(*node);
    return std::move(notes_);
  }

 private:
  template <typename... Args>
  void note(PlacementIssue issue, const Node& node, Args&&... args) {
    notes_.push_back({issue, node.name, str(std::forward<Args>(args)...)});
  }

  // Holds codes of a quantizer, or a constant.
  bool quantized(const Value* v) const { return v->is_constant() || quantized_.count(v); }
  // The accumulator of an INT8 kernel, with whatever was fused to it so far.
  bool fused(const Value* v) const { return fused_.count(v) > 0; }
  bool single_use(const Value* v) const { return ir::single_use(graph_, v); }

  bool is_int8_layer(const Node& node) const {
    return is_weighted(node) && quantized(node.input(0)) && is_quantizer(node.input(1)->producer);
  }
  bool all_quantized(const Node& node) const {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Value* v) { return !v || quantized(v); });
  }

  // Finds out, node by node, which outputs hold codes and which a fused kernel's accumulator; the rest is float.
  void mark(const Node& node) {
    const Value* x = node.input(0);
    const auto into = [&](std::unordered_set<const Value*>& set) {
      for (const Value* v : node.outputs)
        if (v) set.insert(v);
    };
    if (is_quantizer(&node)) return into(quantized_);
    if (is_int8_layer(node)) return into(fused_);
    if (is_weighted(node)) return into(float_);
    const bool commutes = commutes_with_quantizer(node);
    if (commutes && all_quantized(node)) return into(quantized_);
    // Element-wise functions, sums, products and means of codes are INT8 kernels of their own.
    const bool int8_function = is_activation(node) || node.kind == OpKind::kAdd || node.kind == OpKind::kMul ||
                               node.kind == OpKind::kBatchNormalization || is_average_pool(node);
    if (int8_function && all_quantized(node)) return into(fused_);
    if (node.kind == OpKind::kAdd) {
      const bool residual = (fused(node.input(0)) && single_use(node.input(0)) && quantized(node.input(1))) ||
                            (fused(node.input(1)) && single_use(node.input(1)) && quantized(node.input(0)));
      return into(residual ? fused_ : float_);
    }
    if (is_swish(node) && (fused(node.input(0)) || fused(node.input(1)))) return into(fused_);
    // What joins an accumulator with other tensors is no part of its kernel.
    const bool epilogue =
        (commutes && ir::data_inputs(node) == 1) || is_activation(node) || node.kind == OpKind::kBatchNormalization;
    into(epilogue && x && fused(x) ? fused_ : float_);
  }

  void check(const Node& node) {
    if (is_quantizer(&node)) return check_quantizer(node);
    if (const auto it = islands_.find(&node); it != islands_.end())
      note(PlacementIssue::kFloatIsland, node, it->second);
    if (node.info().has(ir::trait::kWeighted)) return check_weighted(node);
    if (is_average_pool(node) && !quantized(node.input(0)))
      note(PlacementIssue::kFloatPool, node, text(node), " averages the float tensor '", node.input(0)->name,
           "'; quantize it to stay in INT8");
    if (is_residual_add(node)) check_add(node);
    if (node.kind == OpKind::kConcat) check_concat(node);
  }

  void check_weighted(const Node& node) {
    if (!is_weighted(node)) {
      if (!quantized(node.input(0)) || !quantized(node.input(1)))
        note(PlacementIssue::kFloatLayer, node, text(node),
             " runs in float: both operands are activations, and not both are quantized (--quantize-inputs)");
      return;
    }
    const bool x = quantized(node.input(0)), w = is_quantizer(node.input(1)->producer);
    if (!x || !w) {
      const std::string input = str("its input '", node.input(0)->name, "'");
      const std::string weights = str("its weights '", node.input(1)->name, "'");
      note(PlacementIssue::kFloatLayer, node, text(node), " runs in float: ",
           x   ? weights + " are not quantized"
           : w ? input + " is not quantized"
               : "neither " + input + " nor " + weights + " are quantized");
      return;
    }
    const Node& quantizer = *node.input(1)->producer;
    if (weight_axis(node) && quantizer.input(1)->constant->shape().empty())
      note(PlacementIssue::kPerTensorWeights, node, text(node),
           " has one scale for all its weights; one for each output ", "channel is more accurate at the same speed");
  }

  void check_add(const Node& node) {
    for (size_t i = 0; i < 2; ++i) {
      const Value* own = node.input(i);
      const Value* other = node.input(1 - i);
      if (fused(own) && single_use(own)) {
        if (!quantized(other))
          note(PlacementIssue::kFloatResidual, node, text(node), ": the residual '", other->name,
               "' is float, so the output of ", text(*own->producer), " stays float; quantize the residual");
        return;
      }
    }
    // No operand comes straight from a convolution: was one cut off by its quantizer?
    for (size_t i = 0; i < 2; ++i) {
      const Value* own = node.input(i);
      if (!is_quantizer(own->producer) || !single_use(own)) continue;
      const Value* inside = own->producer->input(0);
      const Node* layer = fused_producer(graph_, inside);
      if (!layer || !is_int8_layer(*layer)) continue;
      note(PlacementIssue::kSplitAdd, node, text(node), ": the quantizer of '", inside->name, "' separates it from ",
           text(*layer), ", so the two cannot be fused; quantize only the other operand '", node.input(1 - i)->name,
           "'");
      return;
    }
  }

  void check_concat(const Node& node) {
    std::map<const Value*, std::vector<float>> scales;
    for (const Value* v : node.inputs)
      if (is_quantizer(v->producer)) scales[v->producer->input(1)] = v->producer->input(1)->constant->to_floats();
    std::set<std::vector<float>> different;
    for (const auto& [value, scale] : scales) different.insert(scale);
    if (different.size() > 1)
      note(PlacementIssue::kConcatRequantizes, node, text(node), " joins tensors with ", different.size(),
           " different scales, so it has to requantize; a unified scale makes it a copy");
  }

  void check_quantizer(const Node& node) {
    const Value* x = node.input(0);
    if (node.get_string("state") == ir::kObserving && !observing_reported_) {
      observing_reported_ = true;
      const auto& nodes = graph_.nodes();
      const auto observing = std::count_if(nodes.begin(), nodes.end(), [](const auto& n) {
        return is_quantizer(n.get()) && n->get_string("state") == ir::kObserving;
      });
      note(PlacementIssue::kNotCalibrated, node, observing, " quantizers still observe (the first is '", node.name,
           "'); calibrate the model");
    }
    const Node* first = nullptr;
    std::set<std::vector<float>> scales;
    for (const Node* user : x->users) {
      if (!is_quantizer(user)) continue;
      if (!first) first = user;
      scales.insert(user->input(1)->constant->to_floats());
    }
    if (first == &node && scales.size() > 1)
      note(PlacementIssue::kQuantizedTwice, node, "tensor '", x->name, "' has quantizers with ", scales.size(),
           " different scales, so it is written ", scales.size(), " times; let its readers share one");
  }

  // Connected float nodes that have quantized neighbors on both sides; weighted ones are reported by themselves.
  void find_islands() {
    std::unordered_set<const Node*> seen;
    for (const auto& start : graph_.nodes()) {
      if (!is_island_node(*start) || seen.count(start.get())) continue;
      std::vector<const Node*> island, todo = {start.get()};
      seen.insert(start.get());
      bool from_int8 = false, to_int8 = false;
      const auto reach = [&](const Node* next) {
        if (is_island_node(*next) && seen.insert(next).second) todo.push_back(next);
      };
      while (!todo.empty()) {
        const Node* node = todo.back();
        todo.pop_back();
        island.push_back(node);
        for (const Value* v : node->inputs) {
          if (!v || v->is_constant()) continue;
          from_int8 |= fused(v) || quantized_.count(v) > 0;
          if (v->producer) reach(v->producer);
        }
        for (const Value* v : node->outputs) {
          if (!v) continue;
          for (const Node* user : v->users) {
            to_int8 |= is_quantizer(user);
            reach(user);
          }
        }
      }
      if (from_int8 && to_int8) islands_[start.get()] = island_text(island);
    }
  }

  bool is_island_node(const Node& node) const {
    if (is_quantizer(&node) || is_weighted(node) || node.outputs.empty() || !node.output()) return false;
    return float_.count(node.output()) > 0;
  }

  static std::string island_text(const std::vector<const Node*>& island) {
    std::string names;
    for (size_t i = 0; i < island.size() && i < 4; ++i) names += (i ? ", " : "") + text(*island[i]);
    if (island.size() > 4) names += ", ...";
    return str("float island of ", island.size(), island.size() == 1 ? " node" : " nodes", " between quantized ones (",
               names, "): its inputs are dequantized and its result is quantized again");
  }

  const Graph& graph_;
  std::unordered_set<const Value*> quantized_, fused_, float_;
  std::map<const Node*, std::string> islands_;
  bool observing_reported_ = false;
  std::vector<PlacementNote> notes_;
};

}  // namespace

const char* placement_issue_name(PlacementIssue issue) {
  return kIssueNames[static_cast<size_t>(issue)];
}

std::vector<PlacementNote> lint_placement(const Graph& graph) {
  return Linter(graph).run();
}

std::string lint_text(const std::vector<PlacementNote>& notes) {
  std::string out;
  for (const PlacementNote& n : notes) out += str(placement_issue_name(n.issue), "  ", n.message, "\n");
  return out;
}

}  // namespace octet::quant
