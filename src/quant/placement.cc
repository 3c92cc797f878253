#include "quant/placement.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/query.h"
#include "quant/fusion_model.h"

namespace octet::quant {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

// What the chosen families ask for beyond the rules that all share.
struct Rules {
  bool residual_add = false;
  bool squeeze_excite = false;
  bool standalone_batch_norm = false;
  bool max_pool = false;
  bool shared_max_pool = false;  // where the input is quantized anyway
};

Rules combine(const std::vector<PlacementRule>& names) {
  Rules r;
  for (const PlacementRule name : names) {
    const bool any = name == PlacementRule::kAuto;
    r.residual_add |= name != PlacementRule::kInception;
    r.squeeze_excite |= any || name == PlacementRule::kEfficientNet;
    r.standalone_batch_norm |= any || name == PlacementRule::kResNetV2;
    r.max_pool |= name == PlacementRule::kResNetV2 || name == PlacementRule::kInception;
    r.shared_max_pool |= any;
  }
  return r;
}

// What must stay float: the excluded nodes, and where only some are to be quantized, all others.
std::unordered_set<const Node*> float_nodes(const Graph& graph, const PlacementOptions& options,
                                            const std::unordered_set<const Node*>& asked) {
  std::unordered_set<const Node*> out = select_nodes(graph, options.exclude, "quantization exclude");
  for (const auto& node : graph.nodes())
    if (asked.count(node.get()) && out.count(node.get()))
      fail_usage("quantization: node '", node->name, "' is excluded, and its inputs are to be quantized");
  if (options.only.empty()) return out;
  const std::unordered_set<const Node*> only = select_nodes(graph, options.only, "quantization only");
  bool some = false;
  for (const auto& node : graph.nodes()) {
    const bool wanted = only.count(node.get()) || asked.count(node.get());
    some |= wanted && !out.count(node.get());
    if (!wanted) out.insert(node.get());
  }
  if (!some) fail_usage("quantization: all nodes that only selects are excluded");
  return out;
}

// Weighted nodes with none above them, or none below.
std::unordered_set<const Node*> outermost_weighted(const Graph& graph, bool first) {
  std::unordered_set<const Value*> beyond;  // values with a weighted node above (first) or below
  std::unordered_set<const Node*> out;
  const auto visit = [&](const Node& node) {
    const auto& from = first ? node.inputs : node.outputs;
    const auto& to = first ? node.outputs : node.inputs;
    const bool reached = std::any_of(from.begin(), from.end(), [&](const Value* v) { return v && beyond.count(v); });
    if (is_weighted(node) && !reached) out.insert(&node);
    if (is_weighted(node) || reached)
      for (const Value* v : to)
        if (v) beyond.insert(v);
  };
  if (first)
    for (auto it = graph.nodes().begin(); it != graph.nodes().end(); ++it) visit(**it);
  else
    for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it) visit(**it);
  return out;
}

class Planner {
 public:
  Planner(const Graph& graph, const PlacementOptions& options)
      : graph_(graph),
        options_(options),
        rules_(combine(options.rules)),
        profile_(profile(options.target)),
        asked_(select_nodes(graph, options.inputs, "quantization inputs")),
        excluded_(float_nodes(graph, options, asked_)) {
    if (options.unsigned_activations && profile_.signed_only)
      fail_usage("quantization: unsigned activations, which the target ", schema::enum_name(options.target),
                 " does not take; leave quant.activations.unsigned at no");
    for (const auto& node : graph.nodes())
      if (node->kind == OpKind::kFakeQuantize || node->kind == OpKind::kQuantizeLinear ||
          node->kind == OpKind::kDequantizeLinear)
        fail("graph '", graph.name, "' is quantized already, at least in part (", node->info().name, " '", node->name,
             "'); start from the float model",
             node->kind == OpKind::kFakeQuantize
                 ? ", or take the quantizers out with 'octet export --data_type fp32' and quantize what that writes"
                 : "");
    // Whoever names a node by himself gets it, also where it is the first or the last one.
    std::unordered_set<const Node*> named = select_nodes(graph, options.only, "quantization only");
    named.insert(asked_.begin(), asked_.end());
    for (const bool first : {true, false})
      if (!(first ? options.quantize_first_layer : options.quantize_last_layer))
        for (const Node* node : outermost_weighted(graph, first))
          if (!named.count(node)) excluded_.insert(node);
  }

  std::vector<PlacedQuantizer> run() {
    for (const auto& node : graph_.nodes()) visit(*node);
    for (const auto& node : graph_.nodes())
      if (rules_.shared_max_pool && node->kind == OpKind::kMaxPool && !excluded_.count(node.get()) &&
          plan_at(node->input(0)))
        quantize(*node, 0);
    if (profile_.quantized_results)
      for (const auto& node : graph_.nodes()) quantize_result(*node);
    if (options_.unify_concat) unify_concats();
    choose_signs();
    choose_bits();
    return std::move(plan_);
  }

 private:
  bool may_read_quantized(const Value* value) const {
    if (value->is_constant()) return false;
    const auto& inputs = graph_.inputs();
    return options_.quantize_input || std::find(inputs.begin(), inputs.end(), value) == inputs.end();
  }

  bool is_quantized_weighted(const Node& node) const {
    return is_weighted(node) && !excluded_.count(&node) && may_read_quantized(node.input(0));
  }

  void visit(Node& node) {
    if (excluded_.count(&node)) return;
    if (asked_.count(&node) && !is_weighted(node)) {
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i]) quantize(node, i);
    } else if (is_quantized_weighted(node)) {
      quantize(node, 0);
      quantize_weights(node);
    } else if (is_average_pool(node) || (rules_.max_pool && node.kind == OpKind::kMaxPool) ||
               (rules_.standalone_batch_norm && is_standalone_batch_norm(node))) {
      quantize(node, 0);
    } else if (rules_.residual_add && is_residual_add(node)) {
      visit_residual_add(node);
    } else if (rules_.squeeze_excite && is_squeeze_excite_mul(node)) {
      quantize(node, 0);
      quantize(node, 1);
    }
  }

  void visit_residual_add(Node& node) {
    std::optional<size_t> fused;
    for (size_t i = 0; i < node.inputs.size() && !fused; ++i) {
      const Node* conv = fused_producer(graph_, node.input(i));
      if (conv && is_quantized_weighted(*conv) && !profile_.quantized_results) fused = i;
    }
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (i != fused) quantize(node, i);
  }

  // For all who read the result of a convolution, behind the Relu or Clip that its quantizer is, so that it is enclosed
  // by quantizers. Behind a MaxPool that a quantizer follows it has one already.
  void quantize_result(const Node& node) {
    if ((node.kind != OpKind::kConv && node.kind != OpKind::kConvTranspose) || !is_quantized_weighted(node)) return;
    const Value* v = node.output();
    const Node* reader = ir::only_reader(graph_, v);
    if (reader && (reader->kind == OpKind::kRelu || reader->kind == OpKind::kClip)) {
      v = reader->output();
      reader = ir::only_reader(graph_, v);
    }
    if (graph_.is_output(v) || (reader && reader->kind == OpKind::kMaxPool && plan_at(reader->output()))) return;
    for (Node* user : std::vector<Node*>(v->users.begin(), v->users.end()))
      for (size_t i = 0; i < user->inputs.size(); ++i)
        if (user->inputs[i] == v && !excluded_.count(user)) quantize(*user, i);
  }

  PlacedQuantizer* plan_at(const Value* value) {
    const auto it = activation_.find(value);
    return it == activation_.end() ? nullptr : &plan_[it->second];
  }

  void quantize(Node& node, size_t input) {
    Value* value = node.input(input);
    if (!may_read_quantized(value)) return;
    PlacedQuantizer* at = plan_at(value);
    if (!at) {
      activation_[value] = plan_.size();
      plan_.push_back({.value = value, .reason = str("input of ", node.info().name, " '", node.name, "'")});
      at = &plan_.back();
    }
    const bool known = std::any_of(at->uses.begin(), at->uses.end(),
                                   [&](const QuantizedUse& u) { return u.node == &node && u.input == input; });
    if (!known) at->uses.push_back({&node, input});
  }

  void quantize_weights(Node& node) {
    Value* value = node.input(1);
    const std::optional<int> axis = options_.weights_per_tensor ? std::nullopt : weight_axis(node);
    const auto key = std::make_pair(static_cast<const Value*>(value), axis.value_or(-1));
    if (!weights_.count(key)) {
      weights_[key] = plan_.size();
      plan_.push_back({.value = value,
                       .axis = axis,
                       .qmin = -127,
                       .reason = str("weights of ", node.info().name, " '", node.name, "'")});
    }
    plan_[weights_[key]].uses.push_back({&node, 1});
  }

  // Concats in reverse order, so that a Concat behind another one passes its group on.
  void unify_concats() {
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      Node& node = **it;
      if (node.kind != OpKind::kConcat || excluded_.count(&node) || !plan_at(node.output())) continue;
      if (!std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Value* v) { return may_read_quantized(v); }))
        continue;
      for (size_t i = 0; i < node.inputs.size(); ++i) quantize(node, i);
      std::string group = plan_at(node.output())->scale_group;
      if (group.empty()) group = node.output()->name;
      std::set<std::string> joined;
      for (const Value* v : node.inputs)
        if (!plan_at(v)->scale_group.empty()) joined.insert(plan_at(v)->scale_group);
      for (PlacedQuantizer& p : plan_)
        if (joined.count(p.scale_group)) p.scale_group = group;
      plan_at(node.output())->scale_group = group;
      for (const Value* v : node.inputs) plan_at(v)->scale_group = group;
    }
  }

  void choose_signs() {
    if (!options_.unsigned_activations && !profile_.unsigned_activations) return;
    SignAnalysis signs;
    std::set<std::string> signed_groups;
    for (const PlacedQuantizer& p : plan_)
      if (!p.value->is_constant() && !signs.cannot_be_negative(p.value)) signed_groups.insert(p.scale_group);
    for (PlacedQuantizer& p : plan_) {
      if (p.value->is_constant() || !signs.cannot_be_negative(p.value)) continue;
      if (!p.scale_group.empty() && signed_groups.count(p.scale_group)) continue;
      p.qmin = 0;
      p.qmax = 255;
    }
  }

  void choose_bits() {
    if (options_.activation_bits == 8 && options_.weight_bits == 8) return;
    std::unordered_set<const Node*> outer = outermost_weighted(graph_, true);
    outer.merge(outermost_weighted(graph_, false));
    std::vector<int64_t> bits;
    std::map<std::string, int64_t> of_group;
    for (const PlacedQuantizer& p : plan_) {
      const bool is_outer =
          std::any_of(p.uses.begin(), p.uses.end(), [&](const QuantizedUse& use) { return outer.count(use.node) > 0; });
      const int64_t own = p.value->is_constant() ? options_.weight_bits : options_.activation_bits;
      bits.push_back(is_outer ? std::max(own, options_.outer_bits) : own);
      if (!p.scale_group.empty()) of_group[p.scale_group] = std::max(of_group[p.scale_group], bits.back());
    }
    for (size_t i = 0; i < plan_.size(); ++i) {
      PlacedQuantizer& p = plan_[i];
      const int64_t n = p.scale_group.empty() ? bits[i] : of_group[p.scale_group];
      const int half = 1 << (n - 1);
      p.qmax = p.qmin == 0 ? 2 * half - 1 : half - 1;
      if (p.qmin < 0) p.qmin = p.value->is_constant() ? 1 - half : -half;
    }
  }

  const Graph& graph_;
  const PlacementOptions& options_;
  Rules rules_;
  const TargetProfile& profile_;
  std::unordered_set<const Node*> asked_, excluded_;
  std::vector<PlacedQuantizer> plan_;
  std::unordered_map<const Value*, size_t> activation_;
  std::map<std::pair<const Value*, int>, size_t> weights_;
};

}  // namespace

OCTET_ENUM_NAMES(PlacementRule, {PlacementRule::kAuto, "auto"}, {PlacementRule::kResNetV1, "resnet_v1"},
                 {PlacementRule::kResNetV2, "resnet_v2"}, {PlacementRule::kMobileNet, "mobilenet"},
                 {PlacementRule::kEfficientNet, "efficientnet"}, {PlacementRule::kInception, "inception"})

std::vector<PlacedQuantizer> plan_placement(const Graph& graph, const PlacementOptions& options) {
  return Planner(graph, options).run();
}

namespace {

int bits_of(const PlacedQuantizer& p) {
  int bits = 1;
  while ((1 << bits) < p.qmax - p.qmin + 1) ++bits;
  return bits;
}

}  // namespace

std::string placement_text(const std::vector<PlacedQuantizer>& plan) {
  std::string out;
  for (const PlacedQuantizer& p : plan) {
    out += str(p.value->name, "  ", p.qmin == 0 ? "u" : "s", bits_of(p));
    out += p.axis ? str(" per channel (axis ", *p.axis, ")") : std::string(" per tensor");
    if (!p.scale_group.empty()) out += str(" scale of '", p.scale_group, "'");
    out += "  ->";
    for (size_t i = 0; i < p.uses.size(); ++i)
      out += str(i ? ", " : " ", p.uses[i].node->info().name, " '", p.uses[i].node->name, "'");
    out += "\n";
  }
  return out;
}

}  // namespace octet::quant
