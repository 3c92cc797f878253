// Patterns that end in a quantizer or in a convolution: which nodes one INT8 step takes over.
#include <algorithm>
#include <unordered_set>

#include "ir/axes.h"
#include "ir/query.h"
#include "lower/channel_lines.h"
#include "lower/emit_float.h"
#include "lower/emit_int8.h"
#include "lower/lowering.h"
#include "lower/pointwise_program.h"
#include "lower/quant_params.h"
#include "lower/transposed_conv.h"

namespace octet::lower {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Value;
using numerics::QuantParams;

// No sum of a convolution and its residual is larger.
float greatest_sum(const Int8Chain& chain) {
  const QuantizedWeights& w = *chain.weights;
  const size_t per_channel = w.codes.size() / w.scales.size();
  double greatest = 0;
  for (size_t c = 0; c < w.scales.size(); ++c) {
    double low = w.accumulator[c], high = low;
    for (size_t i = c * per_channel; i < (c + 1) * per_channel; ++i)
      (w.codes[i] < 0 ? low : high) += 255.0 * w.codes[i];
    greatest = std::max(greatest, std::max(-low, high) * w.scales[c]);
  }
  const double residual = chain.residual ? 256 * chain.residual_params.scale : 0;
  return static_cast<float>(greatest * chain.input.scale * 1.0001 + residual);
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
  std::vector<size_t> normal = ir::normal_axes(node, axes, 4);
  std::sort(normal.begin(), normal.end());
  return normal == std::vector<size_t>{2, 3};
}

bool Lowering::read_weighted(const Chain& chain, Weighted* w, QuantizedWeights* weights, std::string* why) const {
  const Node& node = *chain.weighted;
  if (node.kind == OpKind::kConv) {
    *w = read_conv(node);
  } else if (node.kind == OpKind::kConvTranspose) {
    *w = read_conv_transpose(node);
  } else {
    *w = read_gemm(node, true);
    if (!quantized(w->x)) *w = read_gemm(node, false);
  }
  if (!quantized(w->x)) {
    const bool weights_too = !is_quantizer(node.input(1)->producer);
    *why = weights_too ? "left out of quantization: neither its input '" + in_source(w->x)->name +
                             "' nor its weights are quantized"
                       : input_reason(w->x);
    return false;
  }
  *weights = quantize_weights(*w, *quant(w->x));
  *why = weights->problem;
  return why->empty();
}

Chain Lowering::int8_chain_at(const Value* value) const {
  return match_chain(graph_, value, {.quantized_residual = true}, [this](const Value* v) { return quantized(v); });
}

std::optional<Int8Chain> Lowering::read_fused_chain(const Node& node) {
  const Chain chain = int8_chain_at(node.input(0));
  // The chain's result must be read by this quantizer alone, or it is needed as floats anyway.
  if (chain.weighted == nullptr || !single_use(graph_, node.input(0))) return std::nullopt;
  auto job = read_chain(chain, quantizer_params(node));
  if (job) job->end = &node, job->out = node.output();
  return job;
}

std::optional<Int8Chain> Lowering::read_chain(const Chain& chain, const QuantParams& output) const {
  Int8Chain job{.op = chain.op, .output = output};
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

Lowering::Job Lowering::chain_job(const Int8Chain& chain) {
  need_codes(chain.weighted.x);
  if (chain.residual) need_codes(chain.residual);
  return [chain](PlanBuilder& b) { emit_int8_chain(b, chain); };
}

std::optional<Lowering::Job> Lowering::fused_chain(const Node& node) {
  const auto chain = read_fused_chain(node);
  if (!chain) return std::nullopt;
  return chain_job(*chain);
}

// Add, Sub or Mul of two quantized tensors, clamps, quantizer.
std::optional<Lowering::Job> Lowering::fused_sum(const Node& node) {
  const auto found = pointwise_->quantized_sum(node);
  if (!found) return std::nullopt;
  QuantizedSum sum = *found;
  const ir::Shape& whole = shape_of(node.output());
  float a_multiplier = sum.a_multiplier(), b_multiplier = sum.b_multiplier();
  if (shape_of(sum.a) != whole) std::swap(sum.a, sum.b), std::swap(a_multiplier, b_multiplier);
  const ir::Shape& other = shape_of(sum.b);
  if (shape_of(sum.a) != whole || other.size() != whole.size() || other[1] != whole[1]) return std::nullopt;
  if (other[0] != whole[0] && other[0] != 1) return std::nullopt;
  if (whole.size() == 4) {
    const bool pixel = other[2] == 1 && other[3] == 1;
    if (!pixel && (other[2] != whole[2] || other[3] != whole[3])) return std::nullopt;
  }
  need_codes(sum.a), need_codes(sum.b);
  return [=, &node](PlanBuilder& b) {
    const int left = b.codes(sum.a), right = b.codes(sum.b), out = b.define_codes(node.output(), sum.out);
    const bool product = sum.op->kind == OpKind::kMul;
    b.set_source(node, *sum.op, sum.op->info().name + sum.clamps);
    engine::Step& s = b.step(product ? "mul" : "add", node, {left, right}, {out});
    s.int8 = true;
    const CodeLimits limits = code_limits(sum.bounds, sum.out);
    s.ints["lo"] = limits.lo, s.ints["hi"] = limits.hi;
    if (product) {
      s.floats["multiplier"] = sum.product_multiplier();
    } else {
      s.floats["a_multiplier"] = a_multiplier, s.floats["b_multiplier"] = b_multiplier;
    }
  };
}

std::optional<QuantizedAverage> Lowering::read_average(const Node& quantizer) const {
  QuantizedAverage average;
  std::string clamps;
  const Value* v = skip_clamps(graph_, quantizer.input(0), &average.bounds, &clamps);
  if (!single_use(graph_, quantizer.input(0)) || !single_use(graph_, v)) return std::nullopt;
  // A mean is often flattened before it is quantized.
  const Node* op = v->producer;
  while (op != nullptr && op->info().has(ir::trait::kReshapes)) {
    if (!keeps_features(*op) || !single_use(graph_, op->input(0))) return std::nullopt;
    op = op->input(0)->producer;
  }
  if (op == nullptr || !quantized(op->input(0))) return std::nullopt;
  average.global = is_global_average(*op);
  if (!average.global && (op->kind != OpKind::kAveragePool || shape_of(op->input(0)).size() != 4)) return std::nullopt;
  average.op = op, average.x = op->input(0);
  average.name = op->info().name + clamps;
  return average;
}

std::optional<Lowering::Job> Lowering::fused_average(const Node& node) {
  const auto average = read_average(node);
  if (!average) return std::nullopt;
  need_codes(average->x);
  const QuantParams params = quantizer_params(node);
  return [average = *average, params, &node](PlanBuilder& b) {
    const int in = b.codes(average.x), out = b.define_codes(node.output(), params);
    b.set_source(node, *average.op, average.name);
    engine::Step& s = b.step(average.global ? "global_average" : "average_pool", node, {in}, {out});
    s.int8 = true;
    const CodeLimits limits = code_limits(average.bounds, params);
    s.ints["lo"] = limits.lo, s.ints["hi"] = limits.hi;
    if (!average.global) write_window(s, *average.op);
  };
}

Lowering::Readers Lowering::readers(const Value* root, const Node& quantizer) const {
  const auto between = pointwise_->between(quantizer.output(), root);
  const std::unordered_set<const Value*> own(between.begin(), between.end());
  const auto read_by_own_alone = [&](const Value* v) {
    return !graph_.is_output(v) && std::all_of(v->users.begin(), v->users.end(), [&](const Node* user) {
      return user->outputs.size() == 1 && own.count(user->output()) > 0;
    });
  };
  return {.root = read_by_own_alone(root), .inner = std::all_of(between.begin(), between.end(), [&](const Value* v) {
                                             return v == quantizer.output() || read_by_own_alone(v);
                                           })};
}

PointwiseAnalysis::Source Lowering::table_source(const Node& quantizer) const {
  auto sources = pointwise_->sources(quantizer.output());
  if (sources.empty()) return {};
  // From as far back as nobody else reads what lies between.
  while (sources.size() > 1 && !readers(sources.back().root, quantizer).inner) sources.pop_back();
  return sources.back();
}

std::optional<Int8Chain> Lowering::read_table_chain(const Node& node) {
  const PointwiseAnalysis::Source source = table_source(node);
  if (source.root == nullptr || source.per_channel || !is_quantizer(source.root->producer)) return std::nullopt;
  const Readers only = readers(source.root, node);
  if (!only.root || !only.inner) return std::nullopt;
  auto chain = read_fused_chain(*source.root->producer);
  if (!chain) return std::nullopt;
  chain->end = &node, chain->out = node.output();
  chain->op += "+" + pointwise_->operators(node.output(), source.root);
  chain->table = pointwise_->table(node.output(), source), chain->table_output = quantizer_params(node);
  return chain;
}

std::optional<Int8Chain> Lowering::read_function_chain(const Node& node) {
  for (const PointwiseAnalysis::Source& source : activations_->sources(node.output())) {
    if (source.per_channel) return std::nullopt;
    if (quantized(source.root)) continue;
    const Readers only = readers(source.root, node);
    const Chain found = int8_chain_at(source.root);
    if (!only.root || !only.inner || found.weighted == nullptr) continue;
    // A step beside the border of a quantizer within would be another code there, and jump behind it.
    const auto between = activations_->between(node.output(), source.root);
    if (std::any_of(between.begin(), between.end(),
                    [&](const Value* v) { return v != node.output() && is_quantizer(v->producer); }))
      continue;
    // The steps follow from the function, and the multipliers from the steps.
    auto chain = read_chain(found, {});
    if (!chain) return std::nullopt;
    const QuantParams out = quantizer_params(node);
    PointwiseProgram program(*activations_, node.output(), source.root, 0);
    const auto code_of = [&](float x) { return static_cast<uint8_t>(program.code_of(x) + code_offset(out)); };
    // A code in a squeeze-and-excite or another small tensor decides over many, and takes hardly any time.
    constexpr int64_t kSmall = 4096;
    const ir::Shape& shape = shape_of(node.output());
    const bool small = ir::element_count(shape) / shape[0] <= kSmall;
    chain->function = step_function(code_of, greatest_sum(*chain), small ? Fit::kExact : Fit::kClose);
    if (!chain->function) return std::nullopt;
    chain->output = chain->function->steps(), chain->table_output = out;
    chain->end = &node, chain->out = node.output();
    chain->op += "+" + activations_->operators(node.output(), source.root);
    return chain;
  }
  return std::nullopt;
}

std::optional<Lowering::Job> Lowering::function_chain(const Node& node) {
  const auto chain = read_function_chain(node);
  if (!chain) return std::nullopt;
  return chain_job(*chain);
}

std::optional<Lowering::Job> Lowering::table(const Node& node) {
  const Value* y = node.output();
  const PointwiseAnalysis::Source source = table_source(node);
  if (source.root == nullptr) return std::nullopt;
  // Right behind a convolution the table is part of its step.
  if (const auto chain = read_table_chain(node)) return chain_job(*chain);
  need_codes(source.root);
  const QuantParams out = quantizer_params(node);
  return [=, this, &node](PlanBuilder& b) {
    const std::vector<uint8_t> tables = pointwise_->table(y, source);
    const QuantParams& in = *pointwise_->params(source.root);
    const auto lines =
        source.per_channel ? channel_lines(tables, in.qmin + code_offset(in), in.qmax + code_offset(in)) : std::nullopt;
    const int from = b.codes(source.root), to = b.define_codes(y, out);
    if (node.input(0) != source.root)
      b.set_source(node, *node.input(0)->producer, pointwise_->operators(y, source.root));
    const char* kind = lines ? "scale_shift_codes" : source.per_channel ? "channel_tables" : "copy";
    engine::Step& s = b.step(kind, node, {from}, {to});
    s.int8 = true;
    if (lines) {
      s.ints = {{"lo", lines->lo}, {"hi", lines->hi}};
      s.constants = {{"multiplier", b.constant(lines->multiplier)}, {"offset", b.constant(lines->offset)}};
    } else {
      s.constants[source.per_channel ? "tables" : "table"] = b.constant(tables);
    }
  };
}

}  // namespace octet::lower
