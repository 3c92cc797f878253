#include "lower/transposed_conv.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "lower/emit_float.h"
#include "lower/quant_params.h"

namespace octet::lower {
namespace {

using ir::Node;

// The engine's limits on a window, and what a plan may reasonably hold: every phase is a step.
constexpr int64_t kMaxKernel = 256, kMaxHalo = 4096, kMaxPhases = 64;

struct AxisPhase {
  int64_t first = 0, outputs = 0, dilation = 1, pad = 0, pad_behind = 0;
  std::vector<int64_t> taps;
};

// Tap k of the output at stride * j + first reads the input at j + (first + pad - k * dilation) / stride, if that is a
// whole number.
AxisPhase axis_phase(int64_t first, int64_t stride, int64_t dilation, int64_t pad, int64_t kernel, int64_t in,
                     int64_t out) {
  AxisPhase p{.first = first,
              .outputs = (out - first + stride - 1) / stride,
              .dilation = dilation / std::gcd(stride, dilation)};
  int64_t start = 0;  // of the window, relative to j
  for (int64_t k = kernel; k-- > 0;) {
    const int64_t distance = first + pad - k * dilation;
    if (distance % stride != 0) continue;
    if (p.taps.empty()) start = distance / stride;
    p.taps.push_back(k);
  }
  if (p.taps.empty()) p.taps = {-1}, p.dilation = 1;
  // Windows begin at the input's border or before it; of one that is far inside it is enough to know that it is too
  // large.
  const int64_t missing = start > 0 ? (start + p.dilation - 1) / p.dilation : 0;
  p.taps.insert(p.taps.begin(), static_cast<size_t>(std::min(missing, kMaxKernel)), -1);
  start -= missing * p.dilation;
  p.pad = -start;
  const int64_t last = start + p.outputs - 1 + (static_cast<int64_t>(p.taps.size()) - 1) * p.dilation;
  p.pad_behind = std::max<int64_t>(0, last - (in - 1));
  return p;
}

std::vector<AxisPhase> axis_phases(int64_t stride, int64_t dilation, int64_t pad, int64_t kernel, int64_t in,
                                   int64_t out) {
  std::vector<AxisPhase> phases;
  for (int64_t first = 0; first < std::min(stride, out); ++first)
    phases.push_back(axis_phase(first, stride, dilation, pad, kernel, in, out));
  return phases;
}

}  // namespace

Weighted read_conv_transpose(const Node& node) {
  const ir::Shape &in = *node.input(0)->type.shape, &weights = *node.input(1)->type.shape,
                  &out = *node.output()->type.shape;
  if (in.size() != 4) unsupported(node, "a tensor that is no image");
  require(is_constant(node.input(1)) && (!node.has_input(2) || is_constant(node.input(2))), "ConvTranspose '",
          node.name, "': its weights are computed by the network; the engine needs constants");
  const auto ints = [&](const char* key, int64_t fallback) { return node.get_ints(key, {fallback, fallback}); };
  const auto strides = ints("strides", 1), dilations = ints("dilations", 1);
  Weighted w{.node = &node, .x = node.input(0), .transposed = true};
  w.in_h = in[2], w.in_w = in[3], w.out_h = out[2], w.out_w = out[3];
  kernels::ConvGeometry& g = w.geometry;
  g = {.in_channels = in[1],
       .out_channels = out[1],
       .groups = node.get_int("group", 1),
       .kernel_h = weights[2],
       .kernel_w = weights[3],
       .stride_h = strides[0],
       .stride_w = strides[1],
       .dilation_h = dilations[0],
       .dilation_w = dilations[1]};
  const auto pads = node.get_ints("pads", {0, 0, 0, 0});
  g.pad_top = pads[0], g.pad_left = pads[1];
  const std::string auto_pad = node.get_string("auto_pad", "NOTSET");
  if (auto_pad == "VALID") g.pad_top = g.pad_left = 0;
  if (auto_pad.rfind("SAME", 0) == 0 || !node.get_ints("output_shape").empty()) {
    // The padding follows from the size of the output; the odd pixel is cut where ONNX says.
    const auto extra = ints("output_padding", 0);
    const auto begin = [&](size_t i, int64_t kernel) {
      const int64_t whole = strides[i] * (in[i + 2] - 1) + extra[i] + (kernel - 1) * dilations[i] + 1;
      const int64_t total = std::max<int64_t>(whole - out[i + 2], 0);
      return auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    };
    g.pad_top = begin(0, weights[2]), g.pad_left = begin(1, weights[3]);
  }
  if (g.pad_top < 0 || g.pad_left < 0) unsupported(node, "negative padding");
  return w;
}

std::vector<int8_t> convolution_order(const kernels::ConvGeometry& g, const std::vector<int8_t>& codes) {
  const int64_t ins = g.in_channels / g.groups, outs = g.out_channels / g.groups, taps = g.kernel_h * g.kernel_w;
  std::vector<int8_t> out(codes.size());
  for (int64_t group = 0; group < g.groups; ++group)
    for (int64_t i = 0; i < ins; ++i)
      for (int64_t o = 0; o < outs; ++o)
        std::copy_n(codes.data() + ((group * ins + i) * outs + o) * taps, taps,
                    out.data() + ((group * outs + o) * ins + i) * taps);
  return out;
}

std::vector<ConvPhase> conv_phases(const Weighted& w) {
  const kernels::ConvGeometry& g = w.geometry;
  std::vector<ConvPhase> phases;
  for (const AxisPhase& y : axis_phases(g.stride_h, g.dilation_h, g.pad_top, g.kernel_h, w.in_h, w.out_h))
    for (const AxisPhase& x : axis_phases(g.stride_w, g.dilation_w, g.pad_left, g.kernel_w, w.in_w, w.out_w)) {
      ConvPhase p{.row = y.first, .column = x.first, .weighted = w, .tap_rows = y.taps, .tap_columns = x.taps};
      p.weighted.transposed = false;
      p.weighted.geometry = {.in_channels = g.in_channels,
                             .out_channels = g.out_channels,
                             .groups = g.groups,
                             .kernel_h = static_cast<int64_t>(y.taps.size()),
                             .kernel_w = static_cast<int64_t>(x.taps.size()),
                             .dilation_h = y.dilation,
                             .dilation_w = x.dilation,
                             .pad_top = y.pad,
                             .pad_left = x.pad};
      p.weighted.pad_bottom = y.pad_behind, p.weighted.pad_right = x.pad_behind;
      p.weighted.out_h = y.outputs, p.weighted.out_w = x.outputs;
      phases.push_back(std::move(p));
    }
  return phases;
}

std::string phases_problem(const Weighted& w) {
  const int64_t rows = std::min(w.geometry.stride_h, w.out_h), columns = std::min(w.geometry.stride_w, w.out_w);
  if (rows > kMaxPhases || rows * columns > kMaxPhases) return "no INT8 kernel for so large a stride";
  for (const ConvPhase& p : conv_phases(w)) {
    const kernels::ConvGeometry& g = p.weighted.geometry;
    if (g.kernel_h > kMaxKernel || g.kernel_w > kMaxKernel) return "no INT8 kernel for so large a window";
    if (std::max({g.pad_top, g.pad_left, p.weighted.pad_bottom, p.weighted.pad_right}) > kMaxHalo)
      return "no INT8 kernel for so large an output";
  }
  return "";
}

QuantizedWeights phase_weights(const ConvPhase& p, const Weighted& transposed, const QuantizedWeights& whole,
                               const numerics::QuantParams& input) {
  const kernels::ConvGeometry& g = transposed.geometry;
  QuantizedWeights out{.scales = whole.scales, .bias = whole.bias};
  const int64_t planes = static_cast<int64_t>(whole.codes.size()) / (g.kernel_h * g.kernel_w);
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t row : p.tap_rows)
      for (int64_t column : p.tap_columns)
        out.codes.push_back(row < 0 || column < 0 ? int8_t{0}
                                                  : whole.codes[(plane * g.kernel_h + row) * g.kernel_w + column]);
  start_accumulators(p.weighted, input, &out);
  return out;
}

}  // namespace octet::lower
