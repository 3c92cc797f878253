#include "lower/quant_params.h"

#include <cmath>

#include "base/error.h"
#include "ir/axes.h"
#include "numerics/quantize_span.h"

namespace octet::lower {
namespace {

using numerics::QuantParams;

struct Quantizer {
  std::vector<float> scales;
  std::vector<int64_t> zero_points;  // as many, or one
  int32_t qmin, qmax;
  QuantParams params(size_t i) const {
    return {.scale = scales.size() == 1 ? scales[0] : scales[i],
            .zero_point = static_cast<int32_t>(zero_points.size() == 1 ? zero_points[0] : zero_points[i]),
            .qmin = qmin,
            .qmax = qmax};
  }
};

Quantizer read(const ir::Node& node) {
  require(node.get_string("state") != ir::kObserving, "FakeQuantize '", node.name,
          "' still observes and has no scale; calibrate the model first");
  const ir::Value *scale = node.input(1), *zero_point = node.input(2);
  require(scale != nullptr && scale->is_constant(), "FakeQuantize '", node.name, "': the scale is not a constant");
  Quantizer q{.scales = scale->constant->to_floats(), .zero_points = {0}};
  if (zero_point != nullptr) {
    require(zero_point->is_constant(), "FakeQuantize '", node.name, "': the zero point is not a constant");
    q.zero_points = zero_point->constant->to_ints();
  }
  q.qmin = static_cast<int32_t>(node.get_int("qmin")), q.qmax = static_cast<int32_t>(node.get_int("qmax"));
  require((q.qmin >= -128 && q.qmax <= 127) || (q.qmin >= 0 && q.qmax <= 255), "FakeQuantize '", node.name,
          "': codes in ", q.qmin, "..", q.qmax, " are not 8-bit; the engine has INT8 kernels only");
  require(!q.scales.empty() && (q.zero_points.size() == 1 || q.zero_points.size() == q.scales.size()), "FakeQuantize '",
          node.name, "' has ", q.scales.size(), " scales and ", q.zero_points.size(), " zero points");
  for (float s : q.scales)
    require(std::isfinite(s) && s > 0, "FakeQuantize '", node.name, "': scale ", s, " is not positive and finite");
  for (int64_t z : q.zero_points)
    require(z >= q.qmin && z <= q.qmax, "FakeQuantize '", node.name, "': zero point ", z, " is outside its codes ",
            q.qmin, "..", q.qmax);
  return q;
}

// Index of the channel of element i of a tensor, along `axis`.
struct ChannelOf {
  int64_t inner = 1, size = 1;
  ChannelOf(const ir::Shape& shape, int64_t axis) : size(shape[axis]) {
    for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  }
  size_t operator()(int64_t i) const { return static_cast<size_t>(i / inner % size); }
};

// The axis of a per-channel quantizer, checked against the constant that it quantizes.
int64_t checked_axis(const ir::Node& node, const Quantizer& q, const ir::Shape& shape) {
  const size_t axis = ir::normal_axis(node, node.get_int("axis", 1), shape.size());
  require(shape[axis] == static_cast<int64_t>(q.scales.size()), "FakeQuantize '", node.name, "' has ", q.scales.size(),
          " scales for axis ", axis, " of ", ir::shape_string(shape));
  return static_cast<int64_t>(axis);
}

}  // namespace

int32_t code_offset(const QuantParams& params) {
  return params.qmin < 0 ? 128 : 0;
}

QuantParams quantizer_params(const ir::Node& node) {
  const Quantizer q = read(node);
  require(q.scales.size() == 1, "FakeQuantize '", node.name, "': activations need one scale, not ", q.scales.size());
  return q.params(0);
}

bool is_constant(const ir::Value* value) {
  return value->is_constant() || (is_quantizer(value->producer) && value->producer->input(0)->is_constant());
}

std::optional<std::vector<float>> constant_floats(const ir::Value* value) {
  if (value->is_constant()) return value->constant->to_floats();
  if (!is_constant(value)) return std::nullopt;
  const ir::Node& node = *value->producer;
  const ir::Tensor& tensor = *node.input(0)->constant;
  const Quantizer q = read(node);
  std::vector<float> out = tensor.to_floats();
  if (q.scales.size() == 1) {
    for (float& x : out) x = numerics::fake_quantize(x, q.params(0));
    return out;
  }
  const ChannelOf channel(tensor.shape(), checked_axis(node, q, tensor.shape()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = numerics::fake_quantize(out[i], q.params(channel(i)));
  return out;
}

namespace {

// Checked before a quantizer could hide it: NaN quantizes to the zero point.
void require_finite(const ir::Node& node, const ir::Value* value) {
  const ir::Value* source = value->is_constant() ? value : value->producer->input(0);
  std::vector<float> space;
  require(numerics::all_finite(source->constant->as_floats(space)), node.info().name, " '", node.name,
          "': the weights '", source->name, "' contain NaN or infinity; train or export the model again");
}

}  // namespace

std::vector<float> finite_weights(const ir::Node& node, const ir::Value* value) {
  require_finite(node, value);
  return *constant_floats(value);
}

WeightCodes weight_codes(const ir::Node& node, const ir::Value* value, int64_t channel_axis) {
  if (!is_quantizer(value->producer)) return {.problem = "weights are not quantized"};
  const ir::Node& quantizer = *value->producer;
  require_finite(node, value);
  const ir::Tensor& tensor = *quantizer.input(0)->constant;
  const Quantizer q = read(quantizer);
  const int64_t channels = tensor.shape()[channel_axis];
  if (q.scales.size() > 1 && checked_axis(quantizer, q, tensor.shape()) != channel_axis)
    return {.problem = "weights have scales along another axis than that of the output channels"};
  WeightCodes out;
  for (int64_t c = 0; c < channels; ++c) out.scales.push_back(q.params(c).scale);
  std::vector<float> space;
  const std::span<const float> values = tensor.as_floats(space);
  out.codes.resize(values.size());
  const size_t run = static_cast<size_t>(ChannelOf(tensor.shape(), channel_axis).inner);  // elements of one channel
  for (size_t start = 0, c = 0; start < values.size(); start += run, c = (c + 1) % static_cast<size_t>(channels))
    if (!numerics::quantize_centered(values.subspan(start, run), q.params(c), std::span(out.codes).subspan(start, run)))
      return {.problem = "weight codes minus their zero point exceed 8 bits"};
  return out;
}

}  // namespace octet::lower
