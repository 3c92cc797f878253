// Conv, ConvTranspose, Gemm and MatMul, in the compute type. Where an input holds integer codes, the product is taken
// of the codes and multiplied by the scales afterwards.
#include <algorithm>
#include <utility>

#include "ir/infer.h"
#include "train/convolution.h"
#include "train/ops_common.h"

namespace octet::train {
namespace {

// An operand and the factor its values still need; `scale` is undefined where there is none.
struct Operand {
  at::Tensor value, scale;
};

// `axis`: the dimension of the operand that becomes an output channel, along which its scale may vary; -1: none.
Operand operand(Run& run, int slot, int64_t axis) {
  const Slot& s = run.slots[slot];
  if (s.is_codes() && (s.scale.numel() == 1 || s.axis == axis)) return {s.value, s.scale};
  return {run.low(slot), {}};
}

// Both operands. Integer sums are of codes by codes; otherwise one of them alone may hold codes, too.
std::pair<Operand, Operand> operands(Run& run, int a, int64_t axis_a, int b, int64_t axis_b) {
  std::pair<Operand, Operand> out{operand(run, a, axis_a), operand(run, b, axis_b)};
  if (run.integer_sums && out.first.scale.defined() != out.second.scale.defined())
    out = {{run.low(a), {}}, {run.low(b), {}}};
  return out;
}

at::Tensor product_of_scales(const Operand& a, const Operand& b) {
  if (!a.scale.defined()) return b.scale;
  if (!b.scale.defined()) return a.scale;
  return a.scale * b.scale;
}

// The product of codes: what reads it multiplies it by `scale` and adds `bias`, both along axis 1.
Slot pending(const at::Tensor& accumulator, const at::Tensor& scale, const at::Tensor& bias) {
  return {.value = accumulator, .form = Slot::Form::kPending, .scale = scale, .offset = bias, .axis = 1};
}

// An integer sum, whose bias is one of the summands: numerics::quantize_bias, but a bias that does not fit int32 stays
// itself, as the engine computes such a layer in float32. It comes last: then float32 rounds at most once, as the
// engine's conversion of an int32 does, however large the bias is.
Slot pending_integers(at::Tensor sum, const at::Tensor& scale, const at::Tensor& bias) {
  if (bias.defined()) {
    const at::Tensor steps = at::nan_to_num(at::round(bias.reshape({-1}) / scale.reshape({-1})), 0);
    sum.add_(along_axis(steps, 1, sum.dim()));
  }
  return pending(sum, scale, {});
}

std::vector<int64_t> spatial(const at::Tensor& t) {
  return {t.sizes().begin() + 2, t.sizes().end()};
}

StepFunction conv(const ir::Node& node, const Wiring& w) {
  const int64_t group = node.get_int("group");
  return [w, group, node = &node](Run& run) {
    auto [x, weight] = operands(run, w.in[0], -1, w.in[1], 0);
    const at::Tensor scale = product_of_scales(x, weight);
    const int bias_slot = w.in.size() > 2 ? w.in[2] : -1;
    ir::WindowGeometry g = ir::window_geometry(*node, spatial(x.value), spatial(weight.value));
    const at::Tensor bias = scale.defined() ? at::Tensor() : run.low(bias_slot);
    const at::Tensor y = convolution(x.value, weight.value, bias, std::move(g), group);
    if (scale.defined() && run.integer_sums) {
      run.slots[w.out[0]] = pending_integers(y, scale, run.plain(bias_slot));
    } else if (scale.defined()) {
      run.slots[w.out[0]] = pending(y, scale, run.plain(bias_slot));
    } else {
      run.set(w.out[0], y);
    }
  };
}

struct TransposedGeometry {
  std::vector<int64_t> strides, dilations, output_padding;
  std::vector<int64_t> crop;  // begin of every axis, then end of every axis; negative: zeros are added
};

TransposedGeometry transposed_geometry(const ir::Node& node, const std::vector<int64_t>& input,
                                       const std::vector<int64_t>& kernel) {
  const size_t n = input.size();
  TransposedGeometry g;
  g.strides = node.get_ints("strides", std::vector<int64_t>(n, 1));
  g.dilations = node.get_ints("dilations", std::vector<int64_t>(n, 1));
  g.output_padding = node.get_ints("output_padding", std::vector<int64_t>(n, 0));
  const std::vector<int64_t> wanted = node.get_ints("output_shape");
  const std::string auto_pad = node.get_string("auto_pad");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  g.crop =
      auto_pad == "NOTSET" ? node.get_ints("pads", std::vector<int64_t>(2 * n, 0)) : std::vector<int64_t>(2 * n, 0);
  for (size_t i = 0; i < n && (same || !wanted.empty()); ++i) {
    const int64_t full = g.strides[i] * (input[i] - 1) + g.output_padding[i] + (kernel[i] - 1) * g.dilations[i] + 1;
    const int64_t total = full - (wanted.empty() ? input[i] * g.strides[i] : wanted[i]);
    const int64_t half = total / 2;
    g.crop[i] = auto_pad == "SAME_UPPER" ? half : total - half;
    g.crop[i + n] = total - g.crop[i];
  }
  return g;
}

StepFunction conv_transpose(const ir::Node& node, const Wiring& w) {
  const int64_t group = node.get_int("group");
  return [w, group, node = &node](Run& run) {
    const auto [x, weight] = operands(run, w.in[0], -1, w.in[1], 1);
    at::Tensor scale = product_of_scales(x, weight);
    if (scale.defined() && scale.numel() > 1) scale = scale.reshape({-1}).repeat({group});  // axis 1 repeats in groups
    const TransposedGeometry g = transposed_geometry(*node, spatial(x.value), spatial(weight.value));
    const size_t n = g.strides.size();
    // output_padding is applied with the crop: LibTorch limits its size, ONNX does not.
    const std::vector<int64_t> none(n, 0);
    at::Tensor y =
        at::convolution(x.value, weight.value, std::nullopt, g.strides, none, g.dilations, true, none, group);
    std::vector<int64_t> pad(2 * n);
    for (size_t i = 0; i < n; ++i) {
      pad[2 * (n - 1 - i)] = -g.crop[i];
      pad[2 * (n - 1 - i) + 1] = g.output_padding[i] - g.crop[i + n];
    }
    if (std::any_of(pad.begin(), pad.end(), [](int64_t p) { return p != 0; })) y = at::constant_pad_nd(y, pad);
    const at::Tensor bias = run.plain(w.in.size() > 2 ? w.in[2] : -1);
    if (scale.defined() && run.integer_sums) {
      run.slots[w.out[0]] = pending_integers(y, scale, bias);
    } else if (scale.defined()) {
      run.slots[w.out[0]] = pending(y, scale, bias);
    } else {
      run.set(w.out[0], bias.defined() ? run.flow(y + along_axis(bias, 1, y.dim())) : y);
    }
  };
}

StepFunction gemm(const ir::Node& node, const Wiring& w) {
  const bool trans_a = node.get_int("transA") != 0, trans_b = node.get_int("transB") != 0;
  const double alpha = node.get_float("alpha"), beta = node.get_float("beta");
  return [=](Run& run) {
    const auto [a, b] = operands(run, w.in[0], -1, w.in[1], trans_b ? 0 : 1);
    const at::Tensor scale = product_of_scales(a, b);
    const at::Tensor left = trans_a ? a.value.t() : a.value;
    const int bias_slot = w.in.size() > 2 ? w.in[2] : -1;
    if (!scale.defined() && alpha == 1 && beta == 1 && bias_slot >= 0 && run.plain(bias_slot).dim() <= 1) {
      run.set(w.out[0], at::linear(left, trans_b ? b.value : b.value.t(), run.low(bias_slot).reshape({-1})));
      return;
    }
    at::Tensor y = at::mm(left, trans_b ? b.value.t() : b.value);
    const bool vector = bias_slot < 0 || run.plain(bias_slot).dim() <= 1;
    if (run.integer_sums && scale.defined() && alpha == 1 && beta == 1 && vector) {
      run.slots[w.out[0]] = pending_integers(y, scale, run.plain(bias_slot));
      return;
    }
    if (scale.defined()) y = y.to(run.master) * along_axis(scale.reshape({-1}), 1, 2);
    if (alpha != 1) y = y * alpha;
    if (bias_slot >= 0) y = y + (beta != 1 ? run.plain(bias_slot) * beta : run.plain(bias_slot));
    run.set(w.out[0], run.flow(y));
  };
}

StepFunction matmul(const ir::Node&, const Wiring& w) {
  return [w](Run& run) {
    // A scale may vary along the last axis of the right operand only: that is the last axis of the result too.
    const int64_t rank = run.slots[w.in[1]].value.dim();
    const auto [a, b] = operands(run, w.in[0], -1, w.in[1], rank >= 2 ? rank - 1 : -1);
    const at::Tensor scale = product_of_scales(a, b);
    const at::Tensor y = at::matmul(a.value, b.value);
    run.set(w.out[0], scale.defined() ? run.flow(y.to(run.master) * along_axis(scale, y.dim() - 1, y.dim())) : y);
  };
}

}  // namespace

StepFunction compile_weighted(const ir::Node& node, const Wiring& w) {
  switch (node.kind) {
    case ir::OpKind::kConv:
      return conv(node, w);
    case ir::OpKind::kConvTranspose:
      return conv_transpose(node, w);
    case ir::OpKind::kGemm:
      return gemm(node, w);
    case ir::OpKind::kMatMul:
      return matmul(node, w);
    default:
      break;
  }
  OCTET_CHECK(false, node_text(node), " is not a weighted operator");
}

}  // namespace octet::train
