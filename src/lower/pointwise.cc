#include "lower/pointwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/error.h"
#include "lower/pointwise_program.h"
#include "lower/quant_params.h"
#include "lower/weighted.h"

namespace octet::lower {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Value;
using kernels::BinaryOp;
using kernels::UnaryOp;
using numerics::QuantParams;

constexpr int kMaxNodes = 32;  // of one function

float bound(const Node& node, size_t input, float fallback) {
  if (!node.has_input(input)) return fallback;
  const auto values = constant_floats(node.input(input));
  require(values && values->size() == 1, "Clip '", node.name, "': its bounds are not constant numbers");
  return (*values)[0];
}

// One operand or more is a tensor; the result has its shape.
bool element_wise(const Node& node) {
  if (is_quantizer(&node)) return true;
  if (node.kind == OpKind::kClip) {
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (node.has_input(i) && !node.input(i)->is_constant()) return false;
    return true;
  }
  return unary_function(node).has_value() || binary_function(node).has_value() ||
         node.kind == OpKind::kBatchNormalization;
}

// A constant with one element, or one for each channel of the node's output.
bool constant_operand(const Node& node, const Value* value) {
  if (!value->is_constant()) return false;
  const int64_t count = value->constant->size();
  if (count == 1) return true;
  const ir::Shape& out = *node.output()->type.shape;
  if (out.size() != 2 && out.size() != 4) return false;
  if (count != out[1]) return false;
  if (node.kind == OpKind::kBatchNormalization) return true;
  // The constant's only long dimension must be the channel's.
  const ir::Shape& shape = value->constant->shape();
  const size_t behind = out.size() - 2;  // dimensions behind the channel
  return shape.size() > behind && shape.size() <= out.size() && shape[shape.size() - 1 - behind] == count;
}

}  // namespace

std::optional<Bounds> clamp_bounds(const Node& node) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (node.kind == OpKind::kRelu) return Bounds{0, kInfinity};
  if (node.kind != OpKind::kClip) return std::nullopt;
  return Bounds{bound(node, 1, -kInfinity), bound(node, 2, kInfinity)};
}

std::optional<UnaryFunction> unary_function(const Node& node) {
  switch (node.kind) {
    case OpKind::kRelu:
      return UnaryFunction{UnaryOp::kRelu};
    case OpKind::kClip: {
      const Bounds b = *clamp_bounds(node);
      return UnaryFunction{UnaryOp::kClip, b.lo, b.hi};
    }
    case OpKind::kLeakyRelu:
      return UnaryFunction{UnaryOp::kLeakyRelu, node.get_float("alpha")};
    case OpKind::kElu:
      return UnaryFunction{UnaryOp::kElu, node.get_float("alpha")};
    case OpKind::kSigmoid:
      return UnaryFunction{UnaryOp::kSigmoid};
    case OpKind::kHardSigmoid:
      return UnaryFunction{UnaryOp::kHardSigmoid, node.get_float("alpha"), node.get_float("beta")};
    case OpKind::kHardSwish:
      return UnaryFunction{UnaryOp::kHardSwish};
    case OpKind::kTanh:
      return UnaryFunction{UnaryOp::kTanh};
    case OpKind::kSoftplus:
      return UnaryFunction{UnaryOp::kSoftplus};
    case OpKind::kExp:
      return UnaryFunction{UnaryOp::kExp};
    case OpKind::kLog:
      return UnaryFunction{UnaryOp::kLog};
    case OpKind::kSqrt:
      return UnaryFunction{UnaryOp::kSqrt};
    case OpKind::kNeg:
      return UnaryFunction{UnaryOp::kNeg};
    case OpKind::kAbs:
      return UnaryFunction{UnaryOp::kAbs};
    case OpKind::kErf:
      return UnaryFunction{UnaryOp::kErf};
    case OpKind::kGelu:
      return UnaryFunction{UnaryOp::kGelu};
    case OpKind::kFloor:
      return UnaryFunction{UnaryOp::kFloor};
    default:
      return std::nullopt;
  }
}

std::optional<BinaryOp> binary_function(const Node& node) {
  switch (node.kind) {
    case OpKind::kAdd:
      return BinaryOp::kAdd;
    case OpKind::kSub:
      return BinaryOp::kSub;
    case OpKind::kMul:
      return BinaryOp::kMul;
    case OpKind::kDiv:
      return BinaryOp::kDiv;
    case OpKind::kPow:
      return BinaryOp::kPow;
    case OpKind::kMin:
      return BinaryOp::kMin;
    case OpKind::kMax:
      return BinaryOp::kMax;
    case OpKind::kPRelu:
      return BinaryOp::kPRelu;
    default:
      return std::nullopt;
  }
}

std::optional<QuantizedSum> PointwiseAnalysis::quantized_sum(const Node& quantizer) const {
  QuantizedSum sum;
  const Value* v = skip_clamps(graph_, quantizer.input(0), &sum.bounds, &sum.clamps);
  sum.op = v->producer;
  if (sum.op == nullptr || (v != quantizer.input(0) && !single_use(graph_, v))) return std::nullopt;
  if (sum.op->kind != OpKind::kAdd && sum.op->kind != OpKind::kSub && sum.op->kind != OpKind::kMul) return std::nullopt;
  sum.a = sum.op->input(0), sum.b = sum.op->input(1);
  const QuantParams *a = params_(sum.a), *b = params_(sum.b), *out = params_(quantizer.output());
  if (a == nullptr || b == nullptr || out == nullptr) return std::nullopt;
  sum.a_params = *a, sum.b_params = *b, sum.out = *out;
  return sum;
}

float QuantizedSum::b_multiplier() const {
  const float m = b_params.scale / out.scale;
  return op->kind == OpKind::kSub ? -m : m;
}

float QuantizedSum::product_multiplier() const {
  return numerics::requantize_multiplier(a_params.scale, b_params.scale, out.scale);
}

int32_t QuantizedSum::apply(int32_t a_code, int32_t b_code) const {
  const int32_t x = a_code - a_params.zero_point, y = b_code - b_params.zero_point;
  const int32_t lo = numerics::quantize(bounds.lo, out), hi = numerics::quantize(bounds.hi, out);
  return op->kind == OpKind::kMul
             ? numerics::requantize(x * y, product_multiplier(), out.zero_point, lo, hi)
             : numerics::add_quantized(x, a_multiplier(), y, b_multiplier(), out.zero_point, lo, hi);
}

PointwiseAnalysis::PointwiseAnalysis(const ir::Graph& graph, Params params, IsRoot is_root)
    : graph_(graph), params_(std::move(params)), is_root_(std::move(is_root)) {
  for (const auto& node : graph.nodes()) visit(*node);
}

void PointwiseAnalysis::visit(const Node& node) {
  if (!element_wise(node) || node.outputs.size() != 1 || !node.output()->type.shape) return;
  bool per_channel = false;
  std::vector<std::vector<Source>> chains;
  for (size_t i = 0; i < (is_quantizer(&node) ? 1 : node.inputs.size()); ++i) {
    const Value* in = node.input(i);
    if (in == nullptr) continue;
    if (constant_operand(node, in)) {
      per_channel = per_channel || in->constant->size() > 1;
      continue;
    }
    chains.push_back(chain(in));
  }
  if (chains.empty()) return;
  // The nearest tensor that all operands are functions of.
  for (const Source& candidate : chains[0]) {
    Source source{candidate.root, per_channel, 1};
    bool common = true;
    for (const auto& chain : chains) {
      const auto found =
          std::find_if(chain.begin(), chain.end(), [&](const Source& s) { return s.root == candidate.root; });
      common = common && found != chain.end();
      if (!common) break;
      source.per_channel = source.per_channel || found->per_channel, source.nodes += found->nodes;
    }
    if (!common) continue;
    if (*node.output()->type.shape == *source.root->type.shape && source.nodes <= kMaxNodes)
      nearest_[node.output()] = source;
    return;
  }
}

std::vector<PointwiseAnalysis::Source> PointwiseAnalysis::sources(const Value* value) const {
  std::vector<Source> out;
  Source last;
  for (auto next = nearest_.find(value); next != nearest_.end(); next = nearest_.find(last.root)) {
    last = {next->second.root, last.per_channel || next->second.per_channel, last.nodes + next->second.nodes};
    if (last.nodes > kMaxNodes) break;
    out.push_back(last);
  }
  return out;
}

std::vector<PointwiseAnalysis::Source> PointwiseAnalysis::chain(const Value* value) const {
  std::vector<Source> out = sources(value);
  if (params_(value) || (is_root_ && is_root_(value))) out.insert(out.begin(), Source{.root = value});
  return out;
}

std::vector<const Value*> PointwiseAnalysis::between(const Value* value, const Value* root) const {
  std::vector<const Value*> out;
  std::unordered_set<const Value*> seen{root};
  const std::function<void(const Value*)> visit = [&](const Value* v) {
    if (v == nullptr || is_constant(v) || !seen.insert(v).second) return;
    for (const Value* in : v->producer->inputs) visit(in);
    out.push_back(v);
  };
  visit(value);
  return out;
}

std::string PointwiseAnalysis::operators(const Value* value, const Value* root) const {
  std::string out;
  for (const Value* v : between(value, root))
    if (!is_quantizer(v->producer)) out += (out.empty() ? "" : "+") + std::string(v->producer->info().name);
  return out.empty() ? "Requantize" : out;
}

std::vector<uint8_t> PointwiseAnalysis::table(const Value* value, const Source& source) const {
  const QuantParams &in = *params_(source.root), &out = *params_(value);
  const int64_t channels = source.per_channel ? (*source.root->type.shape)[1] : 1;
  std::vector<uint8_t> entries(static_cast<size_t>(channels) * 256);
  for (int64_t c = 0; c < channels; ++c) {
    PointwiseProgram program(*this, value, source.root, c);
    for (int stored = 0; stored < 256; ++stored) {
      // Bytes that no code is stored as take the nearest code, so that every entry is defined.
      const int32_t code = std::clamp(stored - code_offset(in), in.qmin, in.qmax);
      entries[static_cast<size_t>(c) * 256 + static_cast<size_t>(stored)] =
          static_cast<uint8_t>(program.code_of(numerics::dequantize(code, in), code) + code_offset(out));
    }
  }
  return entries;
}

}  // namespace octet::lower
