#include "lower/lowering.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ir/query.h"
#include "ir/traits.h"
#include "lower/channel_shuffle.h"
#include "lower/emit_float.h"
#include "lower/emit_int8.h"
#include "lower/moved_codes.h"
#include "lower/moves.h"
#include "lower/products.h"
#include "lower/quant_params.h"

namespace octet::lower {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Value;
using numerics::QuantParams;

// Images, and rows of features, have a place in the engine's code layout.
bool has_code_layout(const Value* v) {
  return v->type.data_type == ir::DataType::kFloat32 && (shape_of(v).size() == 4 || shape_of(v).size() == 2);
}

// The number is a multiple of the scale inside the range: it survives quantization.
bool exact(float x, const QuantParams& p) {
  return numerics::fake_quantize(x, p) == x;
}

// A clamp that only quantizers read is part of their tables.
bool only_quantized(const Value* v) {
  return !v->users.empty() && std::all_of(v->users.begin(), v->users.end(), ir::is_quantizer);
}

}  // namespace

Lowering::Lowering(const ir::Graph& graph, const ir::Graph& source) : graph_(graph), source_(source) {
  find_quantized();
  const auto params = [this](const Value* v) { return quant(v); };
  pointwise_.emplace(graph, params);
  activations_.emplace(graph, params, [this](const Value* v) {
    const Node* p = v->producer;
    return starts_chain(p) || (p != nullptr && p->kind == OpKind::kAdd && int8_chain_at(v).weighted != nullptr);
  });
}

const QuantParams* Lowering::quant(const Value* v) const {
  const auto found = quant_.find(v);
  return found == quant_.end() ? nullptr : &found->second;
}

void Lowering::find_quantized() {
  for (const auto& n : graph_.nodes()) {
    const Node& node = *n;
    if (is_quantizer(&node)) {
      has_quantizers_ = true;
      if (is_constant(node.output()) || (feeds_products(node) && !graph_.is_output(node.output()))) continue;
      const QuantParams params = quantizer_params(node);
      if (has_code_layout(node.output())) quant_[node.output()] = params;
    } else if (const auto shuffle = channel_shuffle(graph_, node); shuffle && quantized(shuffle->x)) {
      const QuantParams params = *quant(shuffle->x);
      quant_[node.output()] = params;
    } else if (carries_codes(node)) {
      const QuantParams params = *quant(node.input(0));
      for (const Value* out : node.outputs)
        if (out != nullptr) quant_[out] = params;
    }
  }
}

bool Lowering::carries_codes(const Node& node) const {
  if (node.inputs.empty() || node.input(0) == nullptr || !quantized(node.input(0))) return false;
  const QuantParams& params = *quant(node.input(0));
  for (const Value* out : node.outputs)
    if (out == nullptr || !out->type.shape || !has_code_layout(out)) return false;
  switch (node.kind) {
    case OpKind::kRelu:
      return !only_quantized(node.output());
    case OpKind::kClip: {
      if (only_quantized(node.output())) return false;
      const Bounds b = *clamp_bounds(node);
      return (std::isinf(b.lo) || exact(b.lo, params)) && (std::isinf(b.hi) || exact(b.hi, params));
    }
    case OpKind::kConcat:
      for (const Value* in : node.inputs)
        if (!quantized(in) || *quant(in) != params) return false;
      return true;
    case OpKind::kPad:
      if (const BoxMoves boxes = *box_moves(node); boxes.fill)
        return !boxes.moves.empty() && exact(*boxes.fill, params);
      return moves_codes(node);
    default:
      return moves_codes(node);
  }
}

void Lowering::need_real(const Value* v) {
  needs_real_.insert(v);
  if (quantized(v)) needs_codes_.insert(v);  // the floats are made from the codes
}

bool Lowering::needed(const Node& node) const {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [this](const Value* v) {
    return v != nullptr && (needs_codes_.count(v) || needs_real_.count(v));
  });
}

engine::Plan Lowering::run(bool outputs_stay) {
  for (const Value* output : graph_.outputs()) need_real(output);
  for (auto node = graph_.nodes().rbegin(); node != graph_.nodes().rend(); ++node)
    if (needed(**node)) select(**node);
  PlanBuilder builder(graph_, outputs_stay);
  builder.set_read(&needs_real_);
  for (const auto& [value, place] : places_) builder.set_place(value, place);
  for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job) (*job)(builder);
  return builder.finish();
}

void Lowering::select(const Node& node) {
  if (is_quantizer(&node)) {
    if (!is_constant(node.output())) select_quantizer(node);
  } else if (quantized(node.output())) {
    select_carrier(node);
  } else {
    select_real(node);
  }
}

void Lowering::select_quantizer(const Node& node) {
  const Value *x = node.input(0), *y = node.output();
  const QuantParams params = quantizer_params(node);
  if (!has_code_layout(y)) {
    // No layout of codes for this rank: the function itself, through codes of a row of features.
    fail("FakeQuantize '", node.name, "': '", x->name, "' has rank ", shape_of(x).size(),
         "; the engine quantizes tensors of rank 2 and 4 only, so leave the node that reads it float (octet quantize "
         "--exclude "
         "NODE, or quant.exclude of a spec)");
  }
  if (quantized(x) && *quant(x) == params) {
    need_codes(x);
    jobs_.push_back([x, y](PlanBuilder& b) { b.same_codes(y, x); });
    return;
  }
  for (const auto pattern :
       {&Lowering::fused_chain, &Lowering::table, &Lowering::function_chain, &Lowering::squeeze_excite,
        &Lowering::fused_sum, &Lowering::fused_average, &Lowering::fused_normalization})
    if (auto job = (this->*pattern)(node)) {
      jobs_.push_back(std::move(*job));
      return;
    }
  need_real(x);
  jobs_.push_back([&node, x, y, params](PlanBuilder& b) {
    bool nhwc = false;
    const int in = b.any_real(x, &nhwc), out = b.define_codes(y, params);
    b.step("quantize", node, {in}, {out}).int8 = true;
  });
}

// Lines of features that only this quantizer reads: their floats need no place of their own.
std::optional<Lowering::Job> Lowering::fused_normalization(const Node& quantizer) {
  const Value *x = quantizer.input(0), *y = quantizer.output();
  const Node* norm = x->producer;
  if (norm == nullptr || norm->kind != OpKind::kLayerNormalization || norm->outputs.size() != 1 ||
      !single_use(graph_, x) || shape_of(y).size() != 2 ||
      ir::element_count(shape_of(norm->input(1))) != shape_of(y)[1])
    return std::nullopt;
  for (const Value* in : norm->inputs)
    if (in != nullptr && !is_constant(in)) need_real(in);
  return [this, norm, y, params = quantizer_params(quantizer)](PlanBuilder& b) {
    b.set_source(*norm, *norm, norm->info().name, "computes in floats; its result is codes");
    emit_layer_norm(b, *norm, [&] { return b.define_codes(y, params); });
  };
}

namespace {

// x of x * sigmoid(x).
const Value* swish_argument(const ir::Graph& graph, const Node& node) {
  if (node.kind != OpKind::kMul) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    const Value *x = node.input(i), *gate = node.input(1 - i);
    const Node* sigmoid = gate->producer;
    if (sigmoid != nullptr && sigmoid->kind == OpKind::kSigmoid && sigmoid->input(0) == x && single_use(graph, gate))
      return x;
  }
  return nullptr;
}

}  // namespace

// Pieces that only this Concat reads are made where it wants them, if they are whole blocks of channels.
void Lowering::place_pieces(const Node& concat) {
  if (shape_of(concat.output()).size() != 4 || shape_of(concat.output())[1] < kernels::kChannelBlock) return;
  const BoxMoves boxes = *box_moves(concat);
  for (const BoxMove& move : boxes.moves) {
    const Value* piece = concat.input(move.input);
    // A quantizer of codes of its own only renames them.
    for (const Node* q = piece->producer;
         is_quantizer(q) && quantized(q->input(0)) && single_use(graph_, piece) && *quant(q->input(0)) == *quant(piece);
         q = piece->producer)
      piece = q->input(0);
    const int64_t channel = move.to[1], channels = move.size[1];
    const bool channel_axis =
        move.to[0] + move.to[2] + move.to[3] == 0 && move.size[0] == shape_of(concat.output())[0] &&
        move.size[2] == shape_of(concat.output())[2] && move.size[3] == shape_of(concat.output())[3];
    const bool blocks = channel % kernels::kChannelBlock == 0 &&
                        (channels % kernels::kChannelBlock == 0 || channel + channels == shape_of(concat.output())[1]);
    // A tensor in two of these, or read while its neighbors are written, would need more than a place.
    const bool own = single_use(graph_, piece) && piece->producer != nullptr &&
                     piece->producer->kind != OpKind::kConcat && places_.count(concat.output()) == 0;
    if (channel_axis && blocks && own)
      places_.emplace(piece, PlanBuilder::Place{concat.output(), channel, *quant(concat.output())});
  }
}

void Lowering::select_carrier(const Node& node) {
  if (const auto shuffle = channel_shuffle(graph_, node)) {
    need_codes(shuffle->x);
    jobs_.push_back([this, &node, shuffle = *shuffle](PlanBuilder& b) {
      b.set_source(node, node, "Channel shuffle");
      const int in = b.codes(shuffle.x), out = b.define_codes(node.output(), *quant(shuffle.x));
      engine::Step& s = b.step("channel_shuffle", node, {in}, {out});
      s.int8 = true;
      s.ints["groups"] = shuffle.groups;
    });
    return;
  }
  for (size_t i = 0; i < ir::data_inputs(node); ++i) need_codes(node.input(i));
  if (node.kind == OpKind::kConcat) place_pieces(node);
  jobs_.push_back([this, &node](PlanBuilder& b) { emit_carrier(b, node, *quant(node.input(0))); });
}

std::optional<Lowering::Job> Lowering::int8_chain_to_float(const Chain& chain, const Value* value, std::string* why) {
  Int8Chain job{.end = value->producer, .out = value, .op = chain.op};
  auto weights = std::make_shared<QuantizedWeights>();
  if (!read_weighted(chain, &job.weighted, weights.get(), why)) return std::nullopt;
  job.weights = weights;
  job.input = *quant(job.weighted.x);
  job.bounds = chain.bounds, job.residual = chain.residual;
  need_codes(job.weighted.x);
  if (chain.residual) need_real(chain.residual);
  return [job](PlanBuilder& b) { emit_int8_chain(b, job); };
}

void Lowering::select_real(const Node& node) {
  const Value* out = node.output();
  if (is_int8_product(node)) {
    for (const Value* factor : node.inputs) need_real(floats_of_factor(graph_, factor));
    jobs_.push_back([this, &node](PlanBuilder& b) { emit_int8_product(b, graph_, node); });
    return;
  }
  const Chain chain = match_chain(graph_, out, {}, [this](const Value* v) { return quantized(v); });
  std::string why;
  if (chain.weighted != nullptr) {
    if (auto job = int8_chain_to_float(chain, out, &why)) {
      jobs_.push_back(std::move(*job));
      return;
    }
    if (!has_quantizers_) why.clear();
  }
  // In floats a ConvTranspose is a node as others are.
  if (chain.weighted != nullptr && chain.weighted->kind != OpKind::kConvTranspose) {
    const bool conv = chain.weighted->kind == OpKind::kConv;
    const Weighted w = conv ? read_conv(*chain.weighted) : read_gemm(*chain.weighted, false);
    need_real(w.x);
    if (chain.residual) need_real(chain.residual);
    jobs_.push_back([chain, out, why](PlanBuilder& b) {
      b.set_source(*out->producer, *chain.weighted, chain.op, why);
      emit_float_chain(b, chain, out);
    });
    return;
  }
  if (is_global_average(node) && quantized(node.input(0))) {
    need_codes(node.input(0));
    jobs_.push_back([&node](PlanBuilder& b) {
      const int in = b.codes(node.input(0)), to = b.define_dense(node.output());
      b.step("global_average", node, {in}, {to}).int8 = true;
    });
    return;
  }
  if (const auto shuffle = channel_shuffle(graph_, node)) {
    need_real(shuffle->x);
    jobs_.push_back([&node, shuffle = *shuffle, why = reason(node)](PlanBuilder& b) {
      b.set_source(node, node, "Channel shuffle", why);
      const ir::Shape& shape = shape_of(shuffle.x);
      const int64_t pixels = shape[0] * shape[2] * shape[3], channels = shape[1], each = channels / shuffle.groups;
      const int in = b.nhwc(shuffle.x), out = b.define_real(node.output());
      b.copy(node, in, out,
             {.dims = {pixels, each, shuffle.groups},
              .in_strides = {channels, 1, each},
              .out_strides = {channels, shuffle.groups, 1}});
    });
    return;
  }
  if (const Value* x = swish_argument(graph_, node)) {
    need_real(x);
    jobs_.push_back([&node, x, why = reason(node)](PlanBuilder& b) {
      b.set_source(node, node, "Sigmoid+Mul", why);
      emit_unary(b, node, x, {.op = kernels::UnaryOp::kSilu});
    });
    return;
  }
  for (const Value* in : node.inputs)
    if (in != nullptr && !is_constant(in)) need_real(in);
  if (chain.weighted != &node) why = reason(node);
  jobs_.push_back([&node, why](PlanBuilder& b) {
    b.set_source(node, node, node.info().name, why);
    emit_float(b, node);
  });
}

const Value* Lowering::in_source(const Value* v) const {
  const auto known = [this](const Value* value) { return source_.find_value(value->name) != nullptr; };
  const Value* back = v;
  while (!known(back) && back->producer != nullptr &&
         (is_quantizer(back->producer) || lets_quantizer_pass(*back->producer)))
    back = back->producer->input(0);
  if (known(back)) return back;
  // A part of an operator that was rewritten: what that operator makes of it.
  const Value* on = v;
  while (!known(on) && !on->users.empty() && on->users[0]->outputs.size() == 1) on = on->users[0]->output();
  return known(on) ? on : v;
}

std::string Lowering::input_reason(const Value* x) const {
  const std::string input = "input '" + in_source(x)->name + "' is ";
  if (codes_before_moves(x) == nullptr) return input + "not quantized";
  if (!has_code_layout(x))
    return str(input, "quantized, but the engine has codes of rank 2 and 4 only, not ", shape_of(x).size());
  return input + "quantized, but moved as floats";
}

std::string Lowering::reason(const Node& node) const {
  if (!has_quantizers_) return "";
  const Value* x = nullptr;  // the first input that is not quantized, else the first whose codes do not come through
  for (const Value* in : node.inputs)
    if (in != nullptr && !is_constant(in) && !quantized(in) &&
        (x == nullptr || (codes_before_moves(x) != nullptr && codes_before_moves(in) == nullptr)))
      x = in;
  const bool result = std::any_of(node.output()->users.begin(), node.output()->users.end(), ir::is_quantizer);
  const bool has_kernel = unary_function(node) || node.kind == OpKind::kBatchNormalization ||
                          node.kind == OpKind::kAdd || node.kind == OpKind::kSub || node.kind == OpKind::kMul ||
                          node.kind == OpKind::kConcat || node.kind == OpKind::kAveragePool ||
                          node.kind == OpKind::kGlobalAveragePool || is_global_average(node) ||
                          node.kind == OpKind::kMaxPool || node.kind == OpKind::kGlobalMaxPool;
  if (node.kind == OpKind::kMatMul && x != nullptr) return input_reason(x);
  if (!has_kernel) return std::string("no INT8 kernel for ") + node.info().name;
  if (x != nullptr && (result || codes_before_moves(x) != nullptr)) return input_reason(x);
  if (x != nullptr) return "neither its input '" + in_source(x)->name + "' nor its result is quantized";
  if (node.kind == OpKind::kConcat) return "its inputs have different scales and its result is not quantized";
  return result ? "no INT8 kernel for operands of these shapes" : "its result is not quantized";
}

}  // namespace octet::lower
