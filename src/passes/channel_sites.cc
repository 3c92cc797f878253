#include "passes/channel_sites.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "ir/query.h"
#include "quant/fusion_model.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

bool has_rank(const Value* value, size_t rank) {
  return value->type.shape && value->type.shape->size() == rank;
}

// Nothing where a channel has no place of its own in the weights, or others read them.
std::optional<ChannelWeights> weights_of(const Graph& graph, Node* node) {
  const Value* w = node->input(1);
  if (!w->is_constant() || w->type.data_type != ir::DataType::kFloat32 || !single_use(graph, w)) return std::nullopt;
  const std::optional<ChannelLayout> layout = channel_layout(*node);
  return layout ? std::optional(ChannelWeights{*layout, node}) : std::nullopt;
}

// A bias that can be divided by channel, or none.
bool divisible_bias(const Graph& graph, const Node& node, size_t channels) {
  if (!node.has_input(2)) return true;
  const Value* bias = node.input(2);
  return bias->is_constant() && bias->type.data_type == ir::DataType::kFloat32 && single_use(graph, bias) &&
         bias->constant->shape() == ir::Shape{static_cast<int64_t>(channels)};
}

bool is_end(const Node& node) {
  return node.kind == OpKind::kClip && node.has_input(2);
}

// A channel stays one column where there is one pixel of each.
bool flattens_single_pixels(const Node& node) {
  const std::optional<ir::Shape>& shape = node.input(0)->type.shape;
  return shape && shape->size() >= 2 && node.get_int("axis") == 1 &&
         std::all_of(shape->begin() + 2, shape->end(), [](int64_t d) { return d == 1; });
}

// Of an end: as far as it does not reach its number.
bool keeps_factors(const Node& node) {
  switch (node.kind) {
    case OpKind::kRelu:
    case OpKind::kLeakyRelu:
    case OpKind::kDropout:
    case OpKind::kIdentity:
    case OpKind::kMaxPool:
    case OpKind::kGlobalMaxPool:
      return true;
    case OpKind::kPRelu:
      return node.input(1)->is_constant();
    case OpKind::kFlatten:
      return flattens_single_pixels(node);
    case OpKind::kClip:
      return ir::scalar(node.input(1)) == 0.0f && (!is_end(node) || ir::scalar(node.input(2)) > 0.0f);
    case OpKind::kResize: {
      // Beyond the borders tf_crop_and_resize has a number. Channels must not be resized.
      const Value *x = node.input(0), *y = node.output();
      return node.get_string("coordinate_transformation_mode") != "tf_crop_and_resize" && has_rank(x, 4) &&
             has_rank(y, 4) && x->type.shape->at(1) == y->type.shape->at(1) && x->type.shape->at(1) != ir::kDynamic;
    }
    case OpKind::kAdd: {
      const std::optional<ir::Shape>&a = node.input(0)->type.shape, &b = node.input(1)->type.shape;
      return quant::is_residual_add(node) && a && b && *a == *b;  // nothing is broadcast
    }
    default:
      return quant::is_average_pool(node);
  }
}

// The inputs with the channels of the output.
size_t tied_inputs(const Node& node) {
  if (!keeps_factors(node)) return 0;
  return node.kind == OpKind::kAdd ? 2 : 1;
}

// Walks over the values that are tied to one another.
class Grower {
 public:
  explicit Grower(const Graph& graph) : graph_(graph) {}

  // Nothing where this value's site was asked for before, or is none.
  std::optional<ChannelSite> grow(Value* start) {
    makers_.clear(), readers_.clear(), ends_.clear();
    whole_ = true;
    take(start);
    while (!todo_.empty()) {
      Value* value = todo_.back();
      todo_.pop_back();
      look_up(value), look_down(value);
    }
    return whole_ ? finished() : std::nullopt;
  }

 private:
  void take(Value* value) {
    if (seen_.insert(value).second) todo_.push_back(value);
  }

  void look_up(Value* value) {
    Node* node = value->producer;
    if (node == nullptr || graph_.is_output(value) || node->output() != value) {
      whole_ = false;
    } else if (quant::is_weighted(*node)) {
      makers_.push_back(node);
    } else if (const size_t tied = tied_inputs(*node); tied > 0) {
      for (size_t i = 0; i < tied; ++i) take(node->input(i));
      if (is_end(*node)) ends_.push_back(node);
    } else {
      whole_ = false;
    }
  }

  void look_down(Value* value) {
    for (Node* node : value->users) {
      const bool weighted = quant::is_weighted(*node);
      const size_t tied = weighted ? 1 : tied_inputs(*node);
      for (size_t i = 0; i < node->inputs.size(); ++i) whole_ = whole_ && (node->input(i) != value || i < tied);
      if (weighted)
        readers_.push_back(node);
      else if (tied > 0)
        take(node->output());
    }
  }

  std::optional<ChannelSite> finished() const {
    ChannelSite site{.ends = ends_};
    for (Node* node : makers_) {
      const std::optional<ChannelWeights> w = weights_of(graph_, node);
      if (!w || !divisible_bias(graph_, *node, w->outputs())) return std::nullopt;
      site.makers.push_back(*w);
    }
    for (Node* node : readers_) {
      const std::optional<ChannelWeights> w = weights_of(graph_, node);
      if (!w) return std::nullopt;
      site.readers.push_back(*w);
    }
    if (site.makers.empty() || site.readers.empty()) return std::nullopt;
    site.channels = site.makers[0].outputs();
    const auto fits = [&](size_t channels) { return channels == site.channels; };
    const bool fit = std::all_of(site.makers.begin(), site.makers.end(), [&](auto& w) { return fits(w.outputs()); }) &&
                     std::all_of(site.readers.begin(), site.readers.end(), [&](auto& w) { return fits(w.inputs()); });
    return fit ? std::optional(site) : std::nullopt;
  }

  const Graph& graph_;
  std::unordered_set<const Value*> seen_;
  std::vector<Value*> todo_;
  std::vector<Node*> makers_, readers_, ends_;
  bool whole_ = true;
};

}  // namespace

std::vector<ChannelSite> channel_sites(const Graph& graph) {
  std::vector<ChannelSite> out;
  Grower grower(graph);
  for (const auto& node : graph.nodes()) {
    if (!quant::is_weighted(*node)) continue;
    if (std::optional<ChannelSite> site = grower.grow(node->output())) out.push_back(std::move(*site));
  }
  return out;
}

}  // namespace octet::passes
