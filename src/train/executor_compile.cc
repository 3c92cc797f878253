#include "train/executor_compile.h"

#include <ATen/ops/silu.h>

#include <algorithm>
#include <set>

#include "ir/query.h"
#include "quant/fusion_model.h"
#include "train/ops_fused.h"

namespace octet::train {

using ir::OpKind;

SlotMap::SlotMap(const ir::Graph& graph) {
  for (const ir::Value* value : graph.values()) {
    slots_[value] = static_cast<int>(values_.size());
    values_.push_back(value);
  }
}

Wiring SlotMap::wiring(const ir::Node& node) const {
  Wiring w;
  for (const ir::Value* value : node.inputs) w.in.push_back(of(value));
  for (const ir::Value* value : node.outputs) w.out.push_back(of(value));
  return w;
}

namespace {

// Kinds whose result is a new tensor, never a view of an input.
bool makes_new_tensor(OpKind kind) {
  return kind == OpKind::kConv || kind == OpKind::kBatchNormalization || kind == OpKind::kAdd || kind == OpKind::kGemm;
}

StepFunction compile_node(const ir::Graph& graph, const ir::Node& node, const SlotMap& slots) {
  if (const char* reason = unsupported_reason(node.kind)) fail(node_text(node), " cannot be executed: ", reason);
  require(!node.outputs.empty() && node.outputs[0], node_text(node), " has no output");
  Wiring w = slots.wiring(node);
  const ir::Value* first = node.input(0);
  w.may_overwrite = single_use(graph, first) && first->producer && makes_new_tensor(first->producer->kind);
  switch (node.kind) {
    case OpKind::kConv:
    case OpKind::kConvTranspose:
    case OpKind::kGemm:
    case OpKind::kMatMul:
      return compile_weighted(node, w);
    case OpKind::kBatchNormalization:
    case OpKind::kLayerNormalization:
    case OpKind::kLRN:
    case OpKind::kDropout:
      return compile_norm(node, w);
    case OpKind::kMaxPool:
    case OpKind::kAveragePool:
    case OpKind::kGlobalAveragePool:
    case OpKind::kGlobalMaxPool:
    case OpKind::kReduceMean:
    case OpKind::kReduceSum:
    case OpKind::kReduceMax:
    case OpKind::kArgMax:
      return compile_pool(node, w);
    case OpKind::kConcat:
    case OpKind::kSplit:
    case OpKind::kSlice:
    case OpKind::kPad:
    case OpKind::kReshape:
    case OpKind::kFlatten:
    case OpKind::kSqueeze:
    case OpKind::kUnsqueeze:
    case OpKind::kTranspose:
    case OpKind::kExpand:
    case OpKind::kDepthToSpace:
    case OpKind::kIdentity:
      return compile_shape(node, w);
    case OpKind::kResize:
      return compile_resize(node, w);
    case OpKind::kQuantizeLinear:
    case OpKind::kDequantizeLinear:
    case OpKind::kFakeQuantize:
      return compile_quantize(node, w);
    default:
      return compile_elementwise(node, w);
  }
}

// --- chains

bool floating(const ir::Value* v) {
  using ir::DataType;
  return v && (v->type.data_type == DataType::kFloat32 || v->type.data_type == DataType::kFloat16 ||
               v->type.data_type == DataType::kBFloat16);
}

bool is_chain_norm(const ir::Node& n) {
  const bool one_output = n.outputs.size() == 1 || std::count(n.outputs.begin() + 1, n.outputs.end(), nullptr) ==
                                                       static_cast<int64_t>(n.outputs.size()) - 1;
  return n.kind == OpKind::kBatchNormalization && one_output && floating(n.input(0)) && n.input(0)->type.shape &&
         n.input(0)->type.shape->size() >= 2 && n.input(3)->is_constant() && n.input(4)->is_constant();
}

bool is_chain_add(const ir::Node& n) {
  const ir::Value *a = n.input(0), *b = n.input(1);
  return n.kind == OpKind::kAdd && floating(a) && floating(b) && a != b && !a->is_constant() && !b->is_constant() &&
         a->type.shape && b->type.shape && *a->type.shape == *b->type.shape;
}

bool is_chain_clamp(const ir::Node& n) {
  if (n.kind == OpKind::kRelu) return floating(n.input(0));
  return n.kind == OpKind::kClip && floating(n.input(0)) && (!n.has_input(1) || ir::scalar(n.input(1))) &&
         (!n.has_input(2) || ir::scalar(n.input(2)));
}

bool is_chain_quantize(const ir::Node& n) {
  return n.kind == OpKind::kFakeQuantize && floating(n.input(0)) && !n.input(0)->is_constant() &&
         ir::scalar(n.input(1)) && ir::scalar(n.input(2)) && n.get_string("state") == ir::kFrozen;
}

struct FoundChain {
  Chain chain;
  const ir::Value* x = nullptr;
  const ir::Value* residual = nullptr;
};

// The longest chain of nodes not `taken` that starts at `node`, with no `visible` value inside; length 0: none.
FoundChain find_chain(const ir::Graph& graph, const ir::Node& node, const std::set<const ir::Node*>& taken,
                      const std::set<const ir::Value*>& visible) {
  FoundChain found;
  Chain& c = found.chain;
  const ir::Node* at = &node;
  const auto take = [&](const ir::Node*& place) {
    place = at;
    if (!c.first) c.first = at;
    c.last = at;
    ++c.length;
    const bool ends = visible.contains(at->output());
    at = only_reader(graph, at->output());
    if (at && (ends || taken.count(at))) at = nullptr;
  };
  if (is_chain_norm(*at)) {
    found.x = at->input(0);
    take(c.batch_norm);
  }
  if (at && is_chain_add(*at)) {
    if (c.length == 0) {
      const ir::Value *a = at->input(0), *b = at->input(1);
      const bool second = !(a->producer && a->producer->kind == OpKind::kConv) && b->producer &&
                          b->producer->kind == OpKind::kConv;  // its product may be pending
      found.x = second ? b : a;
      found.residual = second ? a : b;
    } else {
      found.residual = at->input(0) == c.last->output() ? at->input(1) : at->input(0);
    }
    take(c.add);
  }
  if (at && is_chain_clamp(*at)) {
    if (c.length == 0) found.x = at->input(0);
    take(c.clamp);
  }
  if (at && is_chain_quantize(*at) && (c.length == 0 || at->input(0) == c.last->output())) {
    if (c.length == 0) found.x = at->input(0);
    take(c.quantize);
  }
  if (c.length == 1 && c.add) return {};  // nothing to join
  return found;
}

// --- Swish

// The Mul of x * Sigmoid(x), the canonical Swish, whose Sigmoid this is and which alone reads it; nullptr: it is none.
const ir::Node* swish_of(const ir::Graph& graph, const ir::Node& sigmoid, const std::set<const ir::Value*>& visible) {
  if (sigmoid.kind != OpKind::kSigmoid || visible.contains(sigmoid.output())) return nullptr;
  const ir::Node* mul = only_reader(graph, sigmoid.output());
  return mul && quant::is_swish(*mul) ? mul : nullptr;
}

// One pass forward and one backward, and autograd keeps x alone.
Step swish_step(const ir::Node& mul, int x, int out) {
  return {.node = &mul, .run = [=](Run& run) { run.set(out, at::silu(run.plain(x))); }, .outputs = {out}};
}

void set_free_lists(const ir::Graph& graph, const SlotMap& slots, std::vector<Step>& steps,
                    const std::vector<std::vector<int>>& reads) {
  std::set<int> kept;
  for (const ir::Value* value : graph.outputs()) kept.insert(slots.of(value));
  for (const ir::Value* value : graph.constants()) kept.insert(slots.of(value));
  for (size_t i = steps.size(); i-- > 0;) {
    std::set<int> candidates(reads[i].begin(), reads[i].end());
    candidates.insert(steps[i].outputs.begin(), steps[i].outputs.end());  // outputs that nobody reads
    for (const int slot : candidates)
      if (slot >= 0 && kept.insert(slot).second) steps[i].free.push_back(slot);
  }
}

Step node_step(const ir::Graph& graph, const ir::Node& node, const SlotMap& slots) {
  Step step{.node = &node, .run = compile_node(graph, node, slots)};
  for (const int slot : slots.wiring(node).out)
    if (slot >= 0) step.outputs.push_back(slot);
  return step;
}

at::Tensor zero_point_of(const ir::Node& quantize) {
  const std::vector<int64_t> values = quantize.input(2)->constant->to_ints();
  return at::tensor(values, at::TensorOptions().dtype(at::kInt));
}

}  // namespace

std::vector<Step> compile_nodes(const ir::Graph& graph, const SlotMap& slots) {
  std::vector<Step> steps;
  std::vector<std::vector<int>> reads;
  for (const auto& node : graph.nodes()) {
    steps.push_back(node_step(graph, *node, slots));
    reads.push_back(slots.wiring(*node).in);
  }
  set_free_lists(graph, slots, steps, reads);
  return steps;
}

std::vector<Step> compile_fused(const ir::Graph& graph, const SlotMap& slots,
                                const std::set<const ir::Value*>& visible) {
  // A chain runs where its last node stands: everything it reads is there by then.
  std::unordered_map<const ir::Node*, FoundChain> chain_at;  // by last node
  std::set<const ir::Node*> taken;
  for (const auto& node : graph.nodes()) {
    if (taken.count(node.get())) continue;
    const FoundChain found = find_chain(graph, *node, taken, visible);
    const Chain& c = found.chain;
    if (c.length == 0) continue;
    for (const ir::Node* member : {c.batch_norm, c.add, c.clamp, c.quantize})
      if (member) taken.insert(member);
    chain_at[c.last] = found;
  }
  std::unordered_map<const ir::Node*, const ir::Value*> swish_input;  // by its Mul
  for (const auto& node : graph.nodes())
    if (const ir::Node* mul = swish_of(graph, *node, visible)) {
      swish_input[mul] = node->input(0);
      taken.insert(node.get());
    }
  std::vector<Step> steps;
  std::vector<std::vector<int>> reads;
  for (const auto& node : graph.nodes()) {
    if (const auto it = swish_input.find(node.get()); it != swish_input.end()) {
      const int x = slots.of(it->second);
      steps.push_back(swish_step(*node, x, slots.of(node->output())));
      reads.push_back({x});
      continue;
    }
    const auto it = chain_at.find(node.get());
    if (it == chain_at.end()) {
      if (taken.count(node.get())) continue;
      steps.push_back(node_step(graph, *node, slots));
      reads.push_back(slots.wiring(*node).in);
      continue;
    }
    const FoundChain& found = it->second;
    const Chain& c = found.chain;
    ChainWiring w;
    w.x = slots.of(found.x);
    w.residual = slots.of(found.residual);
    if (c.batch_norm) {
      w.gamma = slots.of(c.batch_norm->input(1));
      w.beta = slots.of(c.batch_norm->input(2));
      w.mean = slots.of(c.batch_norm->input(3));
      w.variance = slots.of(c.batch_norm->input(4));
    }
    if (c.quantize) w.scale = slots.of(c.quantize->input(1));
    w.out = slots.of(c.last->output());
    steps.push_back({.node = c.last,
                     .run = compile_chain(c, w, c.quantize ? zero_point_of(*c.quantize) : at::Tensor()),
                     .outputs = {w.out}});
    reads.push_back({w.x, w.residual});
  }
  set_free_lists(graph, slots, steps, reads);
  return steps;
}

const char* unsupported_reason(OpKind) {
  return nullptr;
}

}  // namespace octet::train
