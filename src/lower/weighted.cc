#include "lower/weighted.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ir/infer.h"
#include "ir/query.h"
#include "lower/quant_params.h"
#include "lower/transposed_conv.h"
#include "numerics/accumulator_bound.h"
#include "numerics/quantize_span.h"

namespace octet::lower {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Value;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kMaxWindow = 256;  // what a step of the engine takes

// What makes sums of this channel exact in int32, or why it cannot be.
bool fits_accumulator(std::span<const int8_t> weights, int64_t start) {
  if (std::abs(start) > std::numeric_limits<int32_t>::max()) return false;
  // Kernels start at `start` and add u8 codes times weights in any order.
  return numerics::accumulator_bound(weights, static_cast<int32_t>(start), 0, 0, 255) <=
         std::numeric_limits<int32_t>::max();
}

std::vector<float> bias_of(const Weighted& w) {
  const size_t channels = static_cast<size_t>(w.geometry.out_channels);
  if (!w.node->has_input(2)) return std::vector<float>(channels, 0.0f);
  std::vector<float> bias = finite_weights(*w.node, w.node->input(2));
  if (bias.size() == 1) bias.assign(channels, bias[0]);
  OCTET_CHECK(bias.size() == channels);
  return bias;
}

// The weights of a ConvTranspose as those of a convolution. A constant [in][out / groups] has a scale for each channel
// of the second axis, the same in all groups, or for each of the first, which is one of the output where a group has
// one input.
WeightCodes transposed_codes(const Weighted& w) {
  const kernels::ConvGeometry& g = w.geometry;
  const int64_t per_group = g.out_channels / g.groups;
  const bool by_input = g.groups == g.in_channels;
  WeightCodes found = weight_codes(*w.node, w.node->input(1), 1);
  const bool second_axis = found.problem.empty();
  if (!second_axis && by_input)
    if (WeightCodes first = weight_codes(*w.node, w.node->input(1), 0); first.problem.empty()) found = std::move(first);
  if (!found.problem.empty()) return found;
  std::vector<float> scales;
  for (int64_t o = 0; o < g.out_channels; ++o)
    scales.push_back(found.scales[second_axis ? o % per_group : o / per_group]);
  return {.codes = convolution_order(g, found.codes), .scales = std::move(scales)};
}

}  // namespace

bool starts_chain(const Node* node) {
  if (node == nullptr) return false;
  return node->kind == OpKind::kConv || node->kind == OpKind::kConvTranspose ||
         (node->kind == OpKind::kGemm && is_constant_gemm(*node));
}

const Value* skip_clamps(const ir::Graph& graph, const Value* value, Bounds* bounds, std::string* op) {
  // Networks have one or two; a chain without end would be walked from each of its values.
  constexpr int kMostClamps = 16;
  *bounds = {-kInfinity, kInfinity};
  const Value* v = value;
  for (int clamps = 0;; ++clamps, v = v->producer->input(0)) {
    if (clamps == kMostClamps || v->producer == nullptr || (v != value && !single_use(graph, v))) return v;
    const auto inner = clamp_bounds(*v->producer);
    if (!inner) return v;
    *op = std::string("+") + v->producer->info().name + *op;
    // clamp(clamp(x, inner), outer): the inner bounds, moved into the outer ones.
    *bounds = {std::clamp(inner->lo, bounds->lo, bounds->hi), std::clamp(inner->hi, bounds->lo, bounds->hi)};
  }
}

Weighted read_conv(const Node& node) {
  const ir::Shape &in = shape_of(node.input(0)), &weights = shape_of(node.input(1)), &out = shape_of(node.output());
  require(in.size() == 4, "Conv '", node.name, "': the engine runs 2-D convolutions only, not one over ",
          ir::shape_string(in));
  require(is_constant(node.input(1)) && (!node.has_input(2) || is_constant(node.input(2))), "Conv '", node.name,
          "': its weights are computed by the network; the engine needs constants");
  const ir::WindowGeometry g = ir::window_geometry(node, {in[2], in[3]}, {weights[2], weights[3]});
  for (int64_t pad : g.pads)
    require(pad >= 0, "Conv '", node.name, "': negative padding (", pad, ") is not supported by the engine");
  Weighted w{.node = &node, .x = node.input(0)};
  w.geometry = {.in_channels = in[1],
                .out_channels = out[1],
                .groups = node.get_int("group", 1),
                .kernel_h = g.kernel[0],
                .kernel_w = g.kernel[1],
                .stride_h = g.strides[0],
                .stride_w = g.strides[1],
                .dilation_h = g.dilations[0],
                .dilation_w = g.dilations[1],
                .pad_top = g.pads[0],
                .pad_left = g.pads[1]};
  w.in_h = in[2], w.in_w = in[3], w.out_h = out[2], w.out_w = out[3];
  // What the last window reads behind the image; an explicit pad may be larger than that.
  const auto behind = [](int64_t outputs, int64_t stride, int64_t pad, int64_t kernel, int64_t dilation, int64_t size) {
    return std::max<int64_t>(0, (outputs - 1) * stride - pad + (kernel - 1) * dilation + 1 - size);
  };
  w.pad_bottom = behind(out[2], g.strides[0], g.pads[0], g.kernel[0], g.dilations[0], in[2]);
  w.pad_right = behind(out[3], g.strides[1], g.pads[1], g.kernel[1], g.dilations[1], in[3]);
  return w;
}

bool is_constant_gemm(const Node& node) {
  if (node.kind != OpKind::kGemm || node.get_int("transA") != 0 || !is_constant(node.input(1))) return false;
  if (node.get_float("alpha", 1) != 1) return false;
  if (!node.has_input(2)) return true;
  const Value* bias = node.input(2);
  if (!is_constant(bias) || node.get_float("beta", 1) != 1) return false;
  const ir::Shape& shape = shape_of(bias);
  return shape.empty() || (ir::element_count(shape) == shape.back());
}

bool flattens_images(const Node& reshape) {
  if (reshape.kind != OpKind::kFlatten && reshape.kind != OpKind::kReshape) return false;
  const ir::Shape &image = shape_of(reshape.input(0)), &rows = shape_of(reshape.output());
  return image.size() == 4 && rows.size() == 2 && image[0] == rows[0] && image[1] * image[2] * image[3] == rows[1] &&
         image[2] <= kMaxWindow && image[3] <= kMaxWindow;
}

Weighted read_gemm(const Node& node, bool through_flatten) {
  const ir::Shape &in = shape_of(node.input(0)), &out = shape_of(node.output());
  if (in[1] == 0 || out[1] == 0)
    fail(node.info().name, " '", node.name, "': its weights of shape ", ir::shape_string(shape_of(node.input(1))),
         " have no elements");
  Weighted w{.node = &node, .x = node.input(0)};
  w.geometry.in_channels = in[1], w.geometry.out_channels = out[1];
  w.transpose_weights = node.get_int("transB") == 0;
  w.weight_axis = w.transpose_weights ? 1 : 0;
  const Node* p = w.x->producer;
  if (!through_flatten || p == nullptr || !flattens_images(*p)) return w;
  const ir::Shape& image = shape_of(p->input(0));
  w.x = p->input(0);
  w.geometry.in_channels = image[1];
  w.geometry.kernel_h = w.in_h = image[2], w.geometry.kernel_w = w.in_w = image[3];
  return w;
}

QuantizedWeights quantize_weights(const Weighted& w, const numerics::QuantParams& input) {
  const kernels::ConvGeometry& g = w.geometry;
  if (g.kernel_h > kMaxWindow || g.kernel_w > kMaxWindow) return {.problem = "no INT8 kernel for so large a window"};
  if (w.transposed)
    if (std::string problem = phases_problem(w); !problem.empty()) return {.problem = problem};
  WeightCodes weights = w.transposed ? transposed_codes(w) : weight_codes(*w.node, w.node->input(1), w.weight_axis);
  if (!weights.problem.empty()) return {.problem = weights.problem};
  QuantizedWeights out{.scales = std::move(weights.scales)};
  const int64_t per_channel = static_cast<int64_t>(weights.codes.size()) / g.out_channels;
  if (w.transpose_weights) {
    out.codes.resize(weights.codes.size());
    for (int64_t i = 0; i < per_channel; ++i)
      for (int64_t o = 0; o < g.out_channels; ++o)
        out.codes[o * per_channel + i] = weights.codes[i * g.out_channels + o];
  } else {
    out.codes = std::move(weights.codes);
  }
  const std::vector<float> bias = bias_of(w);
  const int64_t zero_point = input.zero_point + code_offset(input);
  std::vector<int32_t>& codes = out.bias;
  codes.resize(bias.size());
  for (int64_t o = 0; o < g.out_channels; ++o) {
    codes[o] = numerics::quantize_bias(bias[o], input.scale, out.scales[o]);
    const std::span<const int8_t> row(out.codes.data() + o * per_channel, per_channel);
    if (!numerics::bias_fits(bias[o], input.scale, out.scales[o]) ||
        !fits_accumulator(row, codes[o] - zero_point * numerics::sum(row)))
      return {.problem = str("output channel ", o, " could overflow the 32-bit accumulator")};
    const float scale = input.scale * out.scales[o];
    if (!std::isfinite(scale) || scale <= 0) return {.problem = "the product of the scales leaves float32"};
  }
  start_accumulators(w, input, &out);
  return out;
}

void start_accumulators(const Weighted& w, const numerics::QuantParams& input, QuantizedWeights* weights) {
  const int64_t channels = w.geometry.out_channels;
  weights->accumulator.resize(static_cast<size_t>(kernels::padded_channels(channels)));
  kernels::make_acc_init(weights->codes, channels, weights->bias, input.zero_point + code_offset(input),
                         weights->accumulator);
}

}  // namespace octet::lower
