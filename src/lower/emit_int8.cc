#include "lower/emit_int8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "lower/emit_float.h"
#include "lower/moves.h"
#include "lower/quant_params.h"
#include "lower/transposed_conv.h"

namespace octet::lower {

using engine::Step;
using ir::Node;
using ir::OpKind;
using ir::Value;

std::vector<int8_t> pack_weights(const Int8Chain& chain, bool depthwise) {
  const kernels::ConvGeometry& g = chain.weighted.geometry;
  std::vector<int8_t> packed;
  if (depthwise) {
    packed.resize(static_cast<size_t>(kernels::depthwise_weight_bytes(g)));
    kernels::pack_depthwise_weights(g, chain.weights->codes, packed);
  } else {
    const int64_t pitch = kernels::channel_pitch(g.in_channels);
    packed.resize(static_cast<size_t>(kernels::conv_layout(g, pitch).weight_bytes));
    kernels::pack_conv_weights(g, pitch, chain.weights->codes, packed);
  }
  return packed;
}

std::vector<float> multipliers(const Int8Chain& chain) {
  std::vector<float> m(static_cast<size_t>(kernels::padded_channels(chain.weighted.geometry.out_channels)), 0.0f);
  for (size_t c = 0; c < chain.weights->scales.size(); ++c) {
    const float w = chain.weights->scales[c], x = chain.input.scale;
    m[c] = chain.middle   ? numerics::requantize_multiplier(x, w, chain.middle->scale)
           : chain.output ? numerics::requantize_multiplier(x, w, chain.output->scale)
                          : x * w;
    // Sums in steps: the two bits are 1/128 of a step at most, and kernels that know them to be zero are quicker
    // (ChannelLimits::short_multipliers).
    if (chain.function && !chain.middle) m[c] = std::bit_cast<float>((std::bit_cast<uint32_t>(m[c]) + 2) & ~3u);
  }
  return m;
}

namespace {

void write_box(Step& s, const BoxMove& move) {
  const char* names[] = {"n", "c", "h", "w"};
  for (size_t i = 0; i < move.size.size(); ++i) {
    const std::string axis = names[i];
    s.ints["size_" + axis] = move.size[i];
    s.ints["in_" + axis] = move.from[i], s.ints["out_" + axis] = move.to[i];
  }
}

// Codes of the neighbors lie between the taps of a range of channels, so each tap is a run of its own, as in groups.
// Others would rather have them in one run where they do not fill tiles of 64 bytes.
bool reads_taps_apart(const Value& v) {
  const bool full = kernels::channel_pitch((*v.type.shape)[1]) % 64 == 0;
  return full || std::none_of(v.users.begin(), v.users.end(), [](const Node* user) {
           return user->kind == OpKind::kConv && (*user->input(1)->type.shape)[3] > 1 && user->get_int("group", 1) == 1;
         });
}

// A range of channels need not move: whoever reads it can read it where it is.
bool is_range_of_channels(const PlanBuilder& b, const Node& node, const BoxMove& move) {
  const Value &whole = *node.input(move.input), &part = *node.output(move.output);
  const ir::Shape &from = *whole.type.shape, &to = *part.type.shape;
  if (node.kind == OpKind::kConcat || node.kind == OpKind::kPad || from.size() != to.size()) return false;
  for (size_t axis = 0; axis < from.size(); ++axis)
    if (axis != 1 && (move.from[axis] != 0 || from[axis] != to[axis])) return false;
  return kernels::channel_pitch(to[1]) >= kernels::kChannelBlock && !b.has_place(&part) && reads_taps_apart(part);
}

void emit_boxes(PlanBuilder& b, const Node& node, const BoxMoves& boxes, const numerics::QuantParams& params) {
  std::vector<int> outputs(node.outputs.size(), -1);
  for (const BoxMove& move : boxes.moves) {
    if (node.kind == OpKind::kConcat && b.in_place(node.input(move.input), node.output())) continue;
    if (is_range_of_channels(b, node, move)) {
      b.channels_of(node.output(move.output), node.input(move.input), move.from[1]);
      continue;
    }
    int& out = outputs[move.output];
    const bool first = out < 0;
    if (first) out = b.define_codes(node.output(move.output), params);
    if (first && boxes.fill) b.step("fill", node, {}, {out}).int8 = true;
    Step& s = b.step("copy", node, {b.codes(node.input(move.input))}, {out});
    s.int8 = true;
    write_box(s, move);
  }
}

void emit_window(PlanBuilder& b, const Node& node, const numerics::QuantParams& params) {
  const int in = b.codes(node.input(0)), out = b.define_codes(node.output(), params);
  Step& s = b.step("max_pool", node, {in}, {out});
  s.int8 = true;
  write_window(s, node);
}

void emit_pixels(PlanBuilder& b, const Node& node, const PixelIndex& index, const numerics::QuantParams& params) {
  const auto y_ref = b.constant(index.rows), x_ref = b.constant(index.columns);
  const int in = b.codes(node.input(0)), out = b.define_codes(node.output(), params);
  Step& s = b.step("resize_nearest", node, {in}, {out});
  s.int8 = true;
  s.constants["y_index"] = y_ref, s.constants["x_index"] = x_ref;
}

void emit_clamp(PlanBuilder& b, const Node& node, const numerics::QuantParams& params) {
  const CodeLimits limits = code_limits(*clamp_bounds(node), params);
  std::vector<uint8_t> table(256);
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(std::clamp(i, limits.lo, limits.hi));
  const auto ref = b.constant(table);
  const int in = b.codes(node.input(0)), out = b.define_codes(node.output(), params);
  Step& s = b.step("copy", node, {in}, {out});
  s.int8 = true;
  s.constants["table"] = ref;
}

}  // namespace

CodeLimits code_limits(const Bounds& bounds, const numerics::QuantParams& params) {
  const int32_t offset = code_offset(params);
  return {numerics::quantize(bounds.lo, params) + offset, numerics::quantize(bounds.hi, params) + offset};
}

void write_function(Step& s, const std::string& key, const StepFunction& function, const engine::ConstantRef& table) {
  s.constants[key] = table;
  if (function.line_shift > 0) {
    s.ints[key + "_line_shift"] = function.line_shift;
  } else {
    s.ints[key + "_rises"] = function.rises, s.ints[key + "_turn"] = function.turn;
  }
  if (function.tail_shift > 0) s.ints[key + "_tail_shift"] = function.tail_shift;
}

namespace {

// The buffers of one convolution step; residual -1: none.
struct ConvBuffers {
  int in = -1, residual = -1, out = -1;
};

void emit_conv(PlanBuilder& b, const Int8Chain& chain, const ConvBuffers& at) {
  const Weighted& w = chain.weighted;
  const kernels::ConvGeometry& g = w.geometry;
  const bool depthwise = w.depthwise();
  b.need_halo(at.in, {.top = g.pad_top, .bottom = w.pad_bottom, .left = g.pad_left, .right = w.pad_right});
  std::vector<int> inputs{at.in};
  if (chain.residual) inputs.push_back(at.residual);
  const bool table = !chain.table.empty();
  const auto weights = b.constant(pack_weights(chain, depthwise));
  const auto accumulator = b.constant(chain.weights->accumulator), multiplier = b.constant(multipliers(chain));
  engine::ConstantRef table_ref;
  if (table) table_ref = b.constant(chain.table);
  if (chain.function) table_ref = b.constant(chain.function->table);
  b.set_source(*chain.end, *chain.weighted.node, chain.op);
  Step& s = b.step(depthwise ? "depthwise" : "conv", *chain.end, inputs, {at.out});
  s.int8 = true;
  write_geometry(s, g);
  s.constants["weights"] = weights, s.constants["acc_init"] = accumulator, s.constants["multiplier"] = multiplier;
  if (chain.residual) s.ints["residual"] = 1;
  if (table) {
    // The kernel rounds to the codes before the table, so its zero point is not that of the output buffer.
    s.constants["table"] = table_ref;
    s.ints["zero_point"] = chain.output->zero_point + code_offset(*chain.output);
  }
  if (!chain.output) {
    if (std::isfinite(chain.bounds.lo)) s.floats["float_lo"] = chain.bounds.lo;
    if (std::isfinite(chain.bounds.hi)) s.floats["float_hi"] = chain.bounds.hi;
    return;
  }
  if (chain.function) {
    write_function(s, "function", *chain.function, table_ref);
  } else {
    const CodeLimits limits = code_limits(chain.bounds, *chain.output);
    s.ints["lo"] = limits.lo, s.ints["hi"] = limits.hi;
  }
  if (!chain.residual) return;
  s.floats["residual_multiplier"] = chain.residual_params.scale / chain.output->scale;
  if (!chain.middle) return;
  const CodeLimits middle = code_limits(chain.middle_bounds, *chain.middle);
  s.ints["rounds_twice"] = 1;
  s.ints["mid_zero_point"] = chain.middle->zero_point + code_offset(*chain.middle);
  s.ints["mid_lo"] = middle.lo, s.ints["mid_hi"] = middle.hi;
  s.floats["mid_multiplier"] = chain.middle->scale / chain.output->scale;
}

// A phase that has no place in the output, because kernels write floats without gaps and small pixels only at a small
// distance: it is made beside it and moved.
void emit_phase_aside(PlanBuilder& b, const Int8Chain& chain, const ConvPhase& phase, ConvBuffers at) {
  const kernels::ConvGeometry& whole = chain.weighted.geometry;
  const Weighted& w = phase.weighted;
  const std::vector<int64_t> shape = b.buffer(at.out).shape, own{shape[0], shape[1], w.out_h, w.out_w};
  const std::string name = b.buffer(at.out).name + "/phase";
  const int aside = b.scratch(name, b.buffer(at.out).layout, own);
  const int out = std::exchange(at.out, aside);
  Int8Chain conv = chain;
  conv.weighted = w;
  if (chain.output) {
    engine::Buffer &from = b.buffer(out), &to = b.buffer(aside);
    to.scale = from.scale, to.zero_point = from.zero_point, to.code_offset = from.code_offset;
    to.code_min = from.code_min, to.code_max = from.code_max;
    emit_conv(b, conv, at);
    Step& s = b.step("copy", *chain.end, {aside}, {out});
    s.int8 = true;
    s.ints["out_h"] = phase.row, s.ints["out_w"] = phase.column;
    s.ints["step_h"] = w.out_h > 1 ? whole.stride_h : 1, s.ints["step_w"] = w.out_w > 1 ? whole.stride_w : 1;
    return;
  }
  emit_conv(b, conv, at);
  const auto in = nhwc_strides(own), to = nhwc_strides(shape);
  b.copy(*chain.end, aside, out,
         {.dims = {own[0], own[2], own[3], own[1]},
          .in_strides = {in[0], in[2], in[3], in[1]},
          .out_strides = {to[0], to[2] * whole.stride_h, to[3] * whole.stride_w, to[1]},
          .out_offset = phase.row * to[2] + phase.column * to[3]});
}

// One convolution for each phase, which writes (and adds) the pixels of its own.
void emit_phases(PlanBuilder& b, const Int8Chain& chain, const ConvBuffers& at) {
  const Weighted& whole = chain.weighted;
  const kernels::ConvGeometry& g = whole.geometry;
  const int64_t pitch = kernels::channel_pitch(g.out_channels);
  const bool in_place =
      chain.output && (pitch >= kernels::kChannelBlock || pitch * g.stride_w < kernels::kChannelBlock);
  for (const ConvPhase& phase : conv_phases(whole)) {
    const Weighted& w = phase.weighted;
    Int8Chain part = chain;
    part.weights = std::make_shared<QuantizedWeights>(phase_weights(phase, whole, *chain.weights, chain.input));
    ConvBuffers own = at;
    const engine::Buffer::Every rows{phase.row, w.out_h > 1 ? g.stride_h : 1},
        columns{phase.column, w.out_w > 1 ? g.stride_w : 1};
    const auto pixels = [&](int codes) {
      return b.pixels(codes, b.buffer(codes).name + "/phase", w.out_h, w.out_w, rows, columns);
    };
    if (chain.residual) own.residual = pixels(at.residual);
    if (!in_place) {
      emit_phase_aside(b, part, phase, own);
      continue;
    }
    own.out = pixels(at.out);
    part.weighted = w;
    emit_conv(b, part, own);
  }
}

}  // namespace

void emit_int8_chain(PlanBuilder& b, const Int8Chain& chain) {
  ConvBuffers at{.in = b.codes(chain.weighted.x)};
  if (chain.residual) at.residual = chain.output ? b.codes(chain.residual) : b.real(chain.residual);
  at.out = chain.output ? b.define_codes(chain.out, chain.written()) : b.define_real(chain.out);
  if (chain.weighted.transposed)
    emit_phases(b, chain, at);
  else
    emit_conv(b, chain, at);
}

void emit_carrier(PlanBuilder& b, const Node& node, const numerics::QuantParams& params) {
  switch (node.kind) {
    case OpKind::kMaxPool:
    case OpKind::kGlobalMaxPool:
      return emit_window(b, node, params);
    case OpKind::kRelu:
    case OpKind::kClip:
      return emit_clamp(b, node, params);
    case OpKind::kResize:
      return emit_pixels(b, node, {resize_axis(node, 2).low, resize_axis(node, 3).low}, params);
    case OpKind::kPad:
      if (const auto index = repeated_pixels(node)) return emit_pixels(b, node, *index, params);
      [[fallthrough]];
    case OpKind::kConcat:
    case OpKind::kSplit:
    case OpKind::kSlice:
      return emit_boxes(b, node, *box_moves(node), params);
    default:
      b.same_codes(node.output(), node.input(0));
  }
}

}  // namespace octet::lower
