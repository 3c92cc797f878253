#include "quant/placement.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/query.h"
#include "ir/traits.h"
#include "quant/fusion_model.h"
#include "quant/placement_codes.h"

namespace octet::quant {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

using InputSet = std::set<std::pair<const Node*, size_t>>;

// What the cases of the user say: inputs that are to be quantized, or not.
struct CaseInputs {
  InputSet wanted, kept;

  CaseInputs(const Graph& graph, const std::vector<QdqCase>& cases) {
    for (const QdqCase& each : cases)
      for (const QdqInput& input : each.find(graph)) {
        OCTET_CHECK(input.node && input.node->has_input(input.input), "case ", each.name, ", input ", input.input);
        (input.quantize ? wanted : kept).insert({input.node, input.input});
      }
  }
  bool wants(const Node* node) const {
    const auto first = wanted.lower_bound({node, 0});
    return first != wanted.end() && first->first == node;
  }
};

// What must stay float: the excluded nodes, and where only some are to be quantized, all others.
std::unordered_set<const Node*> float_nodes(const Graph& graph, const PlacementOptions& options,
                                            const std::unordered_set<const Node*>& asked, const CaseInputs& cases) {
  std::unordered_set<const Node*> out = select_nodes(graph, options.exclude, "quantization exclude");
  for (const auto& node : graph.nodes())
    if (asked.count(node.get()) && out.count(node.get()))
      fail_usage("quantization: node '", node->name, "' is excluded, and its inputs are to be quantized");
  if (options.only.empty()) return out;
  const std::unordered_set<const Node*> only = select_nodes(graph, options.only, "quantization only");
  bool some = false;
  for (const auto& node : graph.nodes()) {
    const bool wanted = only.count(node.get()) || asked.count(node.get()) || cases.wants(node.get());
    some |= wanted && !out.count(node.get());
    if (!wanted) out.insert(node.get());
  }
  if (!some) fail_usage("quantization: all nodes that only selects are excluded");
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
        cases_(graph, options.cases),
        layers_(graph, options.layers),
        excluded_(float_nodes(graph, options, asked_, cases_)) {
    if (rules_.tao) tao_outputs_ = tao_output_nodes(graph);
    if (options.unsigned_activations && rules_.dla)
      fail_usage("quantization: unsigned activations, and a DLA (quant.rules) has signed codes alone");
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
        for (const Node* node : outermost_weighted(graph, first))  // TAO's last layers read what is quantized
          if (!named.count(node) && !tao_outputs_.count(node)) excluded_.insert(node);
  }

  std::vector<PlacedQuantizer> run() {
    if (rules_.whole_tensors() && !options_.only_cases) {
      for (Value* value : graph_.inputs()) quantize_tensor(value);
      for (const auto& node : graph_.nodes())
        for (Value* value : node->outputs)
          if (value) quantize_tensor(value);
    }
    for (const auto& node : graph_.nodes()) visit(*node);
    for (const auto& node : graph_.nodes())
      if (rules_.shared_max_pool && !options_.only_cases && node->kind == OpKind::kMaxPool &&
          !excluded_.count(node.get()) && plan_at(node->input(0)))
        quantize(*node, 0);
    if (profile_.quantized_results && !options_.only_cases)
      for (const auto& node : graph_.nodes()) quantize_result(*node);
    if (options_.unify_concat)
      unify_concats();
    else if (is_auto() && !options_.only_cases)
      share_concats();
    if (rules_.dla) share_ranges_for_dla();
    choose_codes(graph_, options_, layers_, plan_);
    layers_.require_quantized(plan_);
    return std::move(plan_);
  }

 private:
  bool may_read_quantized(const Value* value) const {
    if (value->is_constant()) return false;
    const auto& inputs = graph_.inputs();
    return options_.quantize_input || std::find(inputs.begin(), inputs.end(), value) == inputs.end();
  }

  bool is_auto() const {
    return std::find(options_.rules.begin(), options_.rules.end(), PlacementRule::kAuto) != options_.rules.end();
  }

  bool is_quantized_weighted(const Node& node) const {
    return is_weighted(node) && !excluded_.count(&node) && may_read_quantized(node.input(0));
  }

  // For all who read it, and where the family wants that for the network's output.
  void quantize_tensor(Value* value) {
    const Node* maker = value->producer;
    Rules rules = rules_;
    if (maker && tao_outputs_.count(maker)) rules.tao = false;
    if (!is_quantized_tensor(graph_, *value, rules)) return;
    for (Node* user : std::vector<Node*>(value->users.begin(), value->users.end()))
      for (size_t i = 0; i < user->inputs.size(); ++i)
        if (user->inputs[i] == value && !excluded_.count(user)) quantize(*user, i);
    if (rules.outputs() && graph_.is_output(value) && maker && !excluded_.count(maker)) {
      if (!plan_at(value)) add_activation(value, "output of the network");
      plan_at(value)->output = true;
    }
    if (rules.tao && maker && maker->kind == OpKind::kRelu && !excluded_.count(maker) && plan_at(value))
      plan_at(value)->relu6 = true;
  }

  void visit(Node& node) {
    if (excluded_.count(&node)) return;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!cases_.wanted.count({&node, i})) continue;
      if (i == 1 && is_weighted(node))
        quantize_weights(node);
      else
        quantize(node, i);
    }
    if (options_.only_cases || tao_outputs_.count(&node)) return;
    if (asked_.count(&node) && !is_weighted(node)) {
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i]) quantize(node, i);
    } else if (is_quantized_weighted(node)) {
      if (!reads_codes(node.input(0))) quantize(node, 0);
      if (is_auto()) quantize_whole(node.input(0));
      quantize_weights(node);
    } else if (rules_.whole_tensors() && reads_codes(node.input(0))) {
      return;
    } else if (is_average_pool(node) || (rules_.max_pool && node.kind == OpKind::kMaxPool)) {
      quantize(node, 0);
    } else if (const auto operand = standalone_batch_norm(node); operand && rules_.standalone_batch_norm) {
      quantize(node, *operand);
    } else if (rules_.residual_add && is_residual_add(node)) {
      visit_residual_add(node);
    } else if (rules_.squeeze_excite && is_squeeze_excite_mul(node)) {
      quantize(node, 0);
      quantize(node, 1);
    }
  }

  // Where `part`, which is quantized, is a Concat or a part of one that was only moved since (ShuffleNet shuffles and
  // splits it), the Concat is quantized for all its readers with the same scale, so that codes go through the moves.
  void quantize_whole(const Value* part) {
    const Value* whole = part;
    bool moved = false;  // by more than another shape
    for (const Node* p = whole->producer; p && p->kind != OpKind::kConcat; p = whole->producer) {
      const bool moves = p->info().has(ir::trait::kMoves) && ir::commutes_with_quantizer(*p);
      if (!moves || excluded_.count(p)) return;
      moved |= p->kind == OpKind::kSplit || p->kind == OpKind::kSlice || p->kind == OpKind::kTranspose;
      whole = p->input(0);
    }
    const Node* concat = whole->producer;
    if (!concat || !moved || excluded_.count(concat) || !plan_at(part)) return;
    for (Node* user : std::vector<Node*>(whole->users.begin(), whole->users.end()))
      for (size_t i = 0; i < user->inputs.size(); ++i)
        if (user->inputs[i] == whole && !excluded_.count(user)) quantize(*user, i);
    share_scale({whole, part});
  }

  void visit_residual_add(Node& node) {
    std::optional<size_t> fused;
    for (size_t i = 0; i < node.inputs.size() && !fused; ++i) {
      const Node* conv = fused_producer(graph_, node.input(i));
      if (conv && is_quantized_weighted(*conv) && !is_kept(*conv) && !profile_.quantized_results) fused = i;
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

  // A case keeps an operand of a weighted node as it is.
  bool is_kept(const Node& node) const { return cases_.kept.count({&node, 0}) || cases_.kept.count({&node, 1}); }

  // Where the rules quantize tensors when they are made: codes come to this one through nodes that change none.
  bool reads_codes(const Value* value) const {
    if (!rules_.whole_tensors()) return false;
    while (value && !activation_.count(value)) {
      const Node* node = value->producer;
      if (!node || excluded_.count(node) || ir::data_inputs(*node) != 1 || !ir::commutes_with_quantizer(*node))
        return false;
      value = node->input(0);
    }
    return value != nullptr;
  }

  void add_activation(Value* value, std::string reason) {
    activation_[value] = plan_.size();
    plan_.push_back({.value = value, .reason = std::move(reason)});
  }

  void quantize(Node& node, size_t input) {
    Value* value = node.input(input);
    if (!may_read_quantized(value) || cases_.kept.count({&node, input})) return;
    if (!plan_at(value)) add_activation(value, str("input of ", node.info().name, " '", node.name, "'"));
    add_use(*plan_at(value), {&node, input});
  }

  static void add_use(PlacedQuantizer& quantizer, QuantizedUse use) {
    const bool known = std::any_of(quantizer.uses.begin(), quantizer.uses.end(),
                                   [&](const QuantizedUse& u) { return u.node == use.node && u.input == use.input; });
    if (!known) quantizer.uses.push_back(use);
  }

  void quantize_weights(Node& node) {
    if (cases_.kept.count({&node, 1})) return;
    Value* value = node.input(1);
    const LayerOptions* layer =
        layers_.find({{&node, 1}}, [](const LayerOptions& l) { return l.weights_per_tensor.has_value(); });
    const bool per_tensor = layer ? *layer->weights_per_tensor : options_.weights_per_tensor;
    const std::optional<int> axis = per_tensor ? std::nullopt : weight_axis(node);
    const auto key = std::make_pair(static_cast<const Value*>(value), axis.value_or(-1));
    if (!weights_.count(key)) {
      weights_[key] = plan_.size();
      plan_.push_back({.value = value,
                       .axis = axis,
                       .qmin = -127,
                       .reason = str("weights of ", node.info().name, " '", node.name, "'")});
    }
    add_use(plan_[weights_[key]], {&node, 1});
  }

  // Where a value that a node reads was made: before nodes that move its codes, which read it at `use`.
  struct Origin {
    Value* value;
    QuantizedUse use;
    bool divided = false;  // by a Split or a Slice on the way
  };
  Origin origin_of(Node* reader, size_t input) const {
    Origin out{.value = reader->input(input), .use = {reader, input}};
    for (Node* p = out.value->producer; p && !excluded_.count(p) && ir::data_inputs(*p) == 1; p = out.value->producer) {
      if (!ir::commutes_with_quantizer(*p) || !(p->info().has(ir::trait::kMoves) || p->kind == OpKind::kResize)) break;
      out.divided |= p->kind == OpKind::kSplit || p->kind == OpKind::kSlice;
      out.value = p->input(0), out.use = {p, 0};
    }
    return out;
  }

  // A Concat that is quantized joins codes as they are, where its quantizer could not do the rounding alone: what
  // others read as codes, too, or in another Concat, and what was split off has one scale with it. So the blocks of
  // YOLOv8 (Split, bottlenecks, Concat) and the levels of feature pyramids stay codes, and nothing is rounded twice. A
  // tensor that is divided and has a scale already keeps it (ShuffleNet: else all blocks of a stage had one).
  void share_concats() {
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      Node& node = **it;
      if (node.kind != OpKind::kConcat || excluded_.count(&node) || !plan_at(node.output())) continue;
      std::vector<const Value*> same{node.output()};
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const Origin origin = origin_of(&node, i);
        const bool joined = std::count(same.begin(), same.end(), origin.value) > 0;  // another part of it
        const bool planned = plan_at(origin.value) != nullptr;
        if (!may_read_quantized(origin.value) || (origin.divided && planned && !joined)) continue;
        if (!origin.divided && !planned && origin.value->users.size() < 2) continue;
        quantize(*origin.use.node, origin.use.input);
        same.push_back(origin.value);
        if (plan_at(node.input(i))) same.push_back(node.input(i));
      }
      share_scale(same);
    }
  }

  // Concats in reverse order, so that a Concat behind another one passes its group on.
  void unify_concats() {
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      Node& node = **it;
      if (node.kind != OpKind::kConcat || excluded_.count(&node) || !plan_at(node.output())) continue;
      if (!std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Value* v) { return may_read_quantized(v); }))
        continue;
      for (size_t i = 0; i < node.inputs.size(); ++i) quantize(node, i);
      std::vector<const Value*> values(node.inputs.begin(), node.inputs.end());
      values.insert(values.begin(), node.output());
      share_scale(values);
    }
  }

  // One group for those of them that are quantized, and for whoever shares a scale with them: that of the first one.
  void share_scale(const std::vector<const Value*>& values) {
    std::vector<PlacedQuantizer*> members;
    for (const Value* v : values)
      if (v && plan_at(v)) members.push_back(plan_at(v));
    if (members.size() < 2) return;
    std::string group = members[0]->scale_group;
    if (group.empty()) group = members[0]->value->name;
    std::set<std::string> joined;
    for (const PlacedQuantizer* p : members)
      if (!p->scale_group.empty()) joined.insert(p->scale_group);
    for (PlacedQuantizer& p : plan_)
      if (joined.count(p.scale_group)) p.scale_group = group;
    for (PlacedQuantizer* p : members) p->scale_group = group;
  }

  // What quant::unequal_ranges asks for, and one scale along nodes that move codes, so that none is computed anew.
  void share_ranges_for_dla() {
    for (const auto& node : graph_.nodes()) {
      if (excluded_.count(node.get())) continue;
      const auto data = node->inputs.begin() + static_cast<std::ptrdiff_t>(ir::data_inputs(*node));
      std::vector<const Value*> values(node->inputs.begin(), data);
      const bool moves = ir::commutes_with_quantizer(*node) && node->kind != OpKind::kRelu;
      if (moves || is_average_pool(*node))
        values.insert(values.end(), node->outputs.begin(), node->outputs.end());
      else if (!(node->info().has(ir::trait::kElementwise) && node->info().has(ir::trait::kOperands)))
        continue;
      share_scale(values);
    }
  }

  const Graph& graph_;
  const PlacementOptions& options_;
  Rules rules_;
  const TargetProfile& profile_;
  std::unordered_set<const Node*> asked_;
  CaseInputs cases_;
  LayerSettings layers_;
  std::unordered_set<const Node*> excluded_, tao_outputs_;
  std::vector<PlacedQuantizer> plan_;
  std::unordered_map<const Value*, size_t> activation_;
  std::map<std::pair<const Value*, int>, size_t> weights_;
};

}  // namespace

std::vector<PlacedQuantizer> plan_placement(const Graph& graph, const PlacementOptions& options) {
  return Planner(graph, options).run();
}

}  // namespace octet::quant
