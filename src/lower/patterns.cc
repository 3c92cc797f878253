// Patterns that end in a quantiser or in a convolution: which nodes one INT8 step takes over.
#include <algorithm>
#include <unordered_set>

#include "lower/emit_float.h"
#include "lower/emit_int8.h"
#include "lower/lowering.h"
#include "lower/quant_params.h"

namespace octet::lower {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Value;
using numerics::QuantParams;

const ir::Shape& shape_of(const Value* v) {
  return *v->type.shape;
}

}  // namespace

// N x C x 1 x 1 and N x C are the same codes.
bool keeps_features(const Node& node) {
  const ir::Shape &in = shape_of(node.input(0)), &out = shape_of(node.output());
  const auto features = [](const ir::Shape& s) { return s.size() == 2 || (s.size() == 4 && s[2] == 1 && s[3] == 1); };
  return features(in) && features(out) && in[0] == out[0] && in[1] == out[1];
}

// GlobalAveragePool, or ReduceMean over the image.
bool is_global_average(const Node& node) {
  if (node.kind == OpKind::kGlobalAveragePool) return shape_of(node.input(0)).size() == 4;
  if (node.kind != OpKind::kReduceMean || shape_of(node.input(0)).size() != 4) return false;
  std::vector<int64_t> axes = node.get_ints("axes");
  if (node.has_input(1)) {
    if (!node.input(1)->is_constant()) return false;
    axes = node.input(1)->constant->to_ints();
  }
  for (int64_t& a : axes) a = a < 0 ? a + 4 : a;
  std::sort(axes.begin(), axes.end());
  return axes == std::vector<int64_t>{2, 3};
}

bool Lowering::read_weighted(const Chain& chain, Weighted* w, QuantizedWeights* weights, std::string* why) const {
  const Node& node = *chain.weighted;
  if (node.kind == OpKind::kConv) {
    *w = read_conv(node);
  } else {
    *w = read_gemm(node, true);
    if (!quantized(w->x)) *w = read_gemm(node, false);
  }
  if (!quantized(w->x)) {
    *why = "input '" + w->x->name + "' is not quantised";
    return false;
  }
  *weights = quantize_weights(*w, *quant(w->x));
  *why = weights->problem;
  return why->empty();
}

std::optional<Int8Chain> Lowering::read_fused_chain(const Node& node) {
  const Chain chain =
      match_chain(graph_, node.input(0), {.quantized_residual = true}, [this](const Value* v) { return quantized(v); });
  // The chain's result must be read by this quantiser alone, or it is needed as floats anyway.
  if (chain.weighted == nullptr || !single_use(graph_, node.input(0))) return std::nullopt;
  Int8Chain job{.end = &node, .out = node.output(), .op = chain.op, .output = quantizer_params(node)};
  auto weights = std::make_shared<QuantizedWeights>();
  std::string why;
  if (!read_weighted(chain, &job.weighted, weights.get(), &why)) return std::nullopt;
  job.weights = weights;
  job.input = *quant(job.weighted.x);
  job.bounds = chain.bounds, job.residual = chain.residual, job.middle_bounds = chain.middle_bounds;
  if (chain.middle) job.middle = quantizer_params(*chain.middle);
  if (chain.residual) job.residual_params = *quant(chain.residual);
  return job;
}

std::optional<Lowering::Job> Lowering::fused_chain(const Node& node) {
  const auto chain = read_fused_chain(node);
  if (!chain) return std::nullopt;
  need_codes(chain->weighted.x);
  if (chain->residual) need_codes(chain->residual);
  return [chain = *chain](PlanBuilder& b) { emit_int8_chain(b, chain); };
}

// Add, Sub or Mul of two quantised tensors, clamps, quantiser.
std::optional<Lowering::Job> Lowering::fused_sum(const Node& node) {
  Bounds bounds;
  std::string clamps;
  const Value* v = skip_clamps(graph_, node.input(0), &bounds, &clamps);
  const Node* op = v->producer;
  if (op == nullptr || !single_use(graph_, node.input(0)) || !single_use(graph_, v)) return std::nullopt;
  if (op->kind != OpKind::kAdd && op->kind != OpKind::kSub && op->kind != OpKind::kMul) return std::nullopt;
  const Value *a = op->input(0), *c = op->input(1);
  if (!quantized(a) || !quantized(c)) return std::nullopt;
  bool negative_first = false;
  if (shape_of(a) != shape_of(v)) std::swap(a, c), negative_first = op->kind == OpKind::kSub;
  const ir::Shape &whole = shape_of(v), &other = shape_of(c);
  if (shape_of(a) != whole || other.size() != whole.size() || other[1] != whole[1]) return std::nullopt;
  if (other[0] != whole[0] && other[0] != 1) return std::nullopt;
  if (whole.size() == 4) {
    const bool pixel = other[2] == 1 && other[3] == 1;
    if (!pixel && (other[2] != whole[2] || other[3] != whole[3])) return std::nullopt;
  }
  need_codes(a), need_codes(c);
  const QuantParams pa = *quant(a), pc = *quant(c), py = quantizer_params(node);
  const std::string name = std::string(op->info().name) + clamps;
  return [=, &node](PlanBuilder& b) {
    const int left = b.codes(a), right = b.codes(c), out = b.define_codes(node.output(), py);
    b.set_source(node, *op, name);
    engine::Step& s = b.step(op->kind == OpKind::kMul ? "mul" : "add", node, {left, right}, {out});
    s.int8 = true;
    const CodeLimits limits = code_limits(bounds, py);
    s.ints["lo"] = limits.lo, s.ints["hi"] = limits.hi;
    if (op->kind == OpKind::kMul) {
      s.floats["multiplier"] = numerics::requantize_multiplier(pa.scale, pc.scale, py.scale);
      return;
    }
    const float x = pa.scale / py.scale, y = pc.scale / py.scale;
    s.floats["a_multiplier"] = negative_first ? -x : x;
    s.floats["b_multiplier"] = op->kind == OpKind::kSub && !negative_first ? -y : y;
  };
}

std::optional<Lowering::Job> Lowering::fused_average(const Node& node) {
  Bounds bounds;
  std::string clamps;
  const Value* v = skip_clamps(graph_, node.input(0), &bounds, &clamps);
  if (!single_use(graph_, node.input(0)) || !single_use(graph_, v)) return std::nullopt;
  // A mean is often flattened before it is quantised.
  const Node* op = v->producer;
  while (op != nullptr && (op->kind == OpKind::kFlatten || op->kind == OpKind::kReshape ||
                           op->kind == OpKind::kSqueeze || op->kind == OpKind::kUnsqueeze)) {
    if (!keeps_features(*op) || !single_use(graph_, op->input(0))) return std::nullopt;
    op = op->input(0)->producer;
  }
  if (op == nullptr || !quantized(op->input(0))) return std::nullopt;
  const bool global = is_global_average(*op);
  if (!global && (op->kind != OpKind::kAveragePool || shape_of(op->input(0)).size() != 4)) return std::nullopt;
  const Value* x = op->input(0);
  need_codes(x);
  const QuantParams params = quantizer_params(node);
  const std::string name = std::string(op->info().name) + clamps;
  return [=, &node](PlanBuilder& b) {
    const int in = b.codes(x), out = b.define_codes(node.output(), params);
    b.set_source(node, *op, name);
    engine::Step& s = b.step(global ? "global_average" : "average_pool", node, {in}, {out});
    s.int8 = true;
    const CodeLimits limits = code_limits(bounds, params);
    s.ints["lo"] = limits.lo, s.ints["hi"] = limits.hi;
    if (!global) write_window(s, *op);
  };
}

bool Lowering::serves_only(const Value* root, const Node& quantizer) const {
  std::vector<const Value*> open{root};
  std::unordered_set<const Value*> seen{root};
  while (!open.empty()) {
    const Value* v = open.back();
    open.pop_back();
    if (graph_.is_output(v)) return false;
    for (const Node* user : v->users) {
      if (user == &quantizer) continue;
      const auto source = user->outputs.size() == 1 ? pointwise_->source(user->output()) : std::nullopt;
      if (!source || source->root != root) return false;
      if (seen.insert(user->output()).second) open.push_back(user->output());
    }
    if (seen.size() > 64) return false;
  }
  return true;
}

std::optional<Lowering::Job> Lowering::table(const Node& node) {
  const Value *x = node.input(0), *y = node.output();
  PointwiseAnalysis::Source source;
  if (quantized(x)) {
    source.root = x;
  } else {
    const auto found = pointwise_->source(x);
    if (!found) return std::nullopt;
    source = *found;
  }
  const QuantParams in = *quant(source.root), out = quantizer_params(node);
  // Right behind a convolution the table is part of its step.
  if (is_quantizer(source.root->producer) && !source.per_channel && serves_only(source.root, node)) {
    if (auto chain = read_fused_chain(*source.root->producer)) {
      chain->end = &node, chain->out = y;
      chain->op += std::string("+") + (x == source.root ? "Requantize" : x->producer->info().name);
      chain->table = pointwise_->table(x, source, in, out), chain->table_output = out;
      need_codes(chain->weighted.x);
      if (chain->residual) need_codes(chain->residual);
      return [chain = *chain](PlanBuilder& b) { emit_int8_chain(b, chain); };
    }
  }
  need_codes(source.root);
  return [=, this, &node](PlanBuilder& b) {
    const auto ref = b.constant(pointwise_->table(x, source, in, out));
    const int from = b.codes(source.root), to = b.define_codes(y, out);
    if (x != source.root) b.set_source(node, *x->producer, x->producer->info().name);
    engine::Step& s = b.step(source.per_channel ? "channel_tables" : "copy", node, {from}, {to});
    s.int8 = true;
    s.constants[source.per_channel ? "tables" : "table"] = ref;
  };
}

}  // namespace octet::lower
