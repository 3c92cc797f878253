// Normalizations: by statistics that are known, and by those of what is normalized.
#include <cmath>

#include "dense/operators.h"

namespace octet::dense {
namespace {

std::span<const float> floats_of(const Call& call, size_t i, int64_t count, const char* what) {
  const Tensor& t = call.input(i);
  require(t.type() == Type::kFloat && t.size() == count, "its ", what, " should be ", count, " floats, not ",
          type_name(t.type()), shape_text(t.shape()));
  return t.values<float>();
}

const Tensor& floats_with_channels(const Call& call) {
  const Tensor& x = call.input(0);
  require(x.type() == Type::kFloat && x.rank() >= 2, "should read floats with channels, not ", type_name(x.type()),
          shape_text(x.shape()));
  return x;
}

float epsilon_of(const Call& call) {
  return call.float_attribute("epsilon", 1e-5f);
}

Tensors batch_normalization(const Call& call) {
  const Tensor& x = floats_with_channels(call);
  const int64_t channels = x.shape()[1], pixels = element_count({x.shape().begin() + 2, x.shape().end()});
  const auto scale = floats_of(call, 1, channels, "scale"), offset = floats_of(call, 2, channels, "offset"),
             mean = floats_of(call, 3, channels, "mean"), variance = floats_of(call, 4, channels, "variance");
  Tensor out = call.memory().make<float>(x.shape());
  const float* from = x.values<float>().data();
  float* to = out.mutable_values<float>().data();
  if (out.size() == 0) return {out};
  for (int64_t plane = 0; plane < x.shape()[0] * channels; ++plane, from += pixels, to += pixels) {
    const auto c = static_cast<size_t>(plane % channels);
    const float factor = scale[c] / std::sqrt(variance[c] + epsilon_of(call));
    for (int64_t i = 0; i < pixels; ++i) to[i] = (from[i] - mean[c]) * factor + offset[c];
  }
  return {out};
}

struct Statistics {
  float mean = 0, factor = 0;  // 1 / sqrt(variance + epsilon)
};

// y = (x - mean) / sqrt(variance + epsilon) of `count` numbers.
Statistics normalize(const float* x, float* y, int64_t count, float epsilon) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(count) + double{epsilon});
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>((x[i] - mean) * factor);
  return {static_cast<float>(mean), static_cast<float>(factor)};
}

// By groups of channels of an image, each channel, or each group as until opset 20, with a scale and an offset.
Tensors normalize_groups(const Call& call, int64_t groups) {
  const Tensor& x = floats_with_channels(call);
  const int64_t channels = x.shape()[1], pixels = element_count({x.shape().begin() + 2, x.shape().end()});
  require(groups >= 1 && channels % groups == 0, channels, " channels cannot be divided into ", groups, " groups");
  const int64_t of_group = channels / groups;
  const int64_t count = call.input(1).size() == groups ? groups : channels;
  const auto scale = floats_of(call, 1, count, "scale"), offset = floats_of(call, 2, count, "offset");
  Tensor out = call.memory().make<float>(x.shape());
  const float* const from = x.values<float>().data();
  float* const to = out.mutable_values<float>().data();
  if (out.size() == 0) return {out};
  for (int64_t g = 0; g < x.shape()[0] * groups; ++g)
    normalize(from + g * of_group * pixels, to + g * of_group * pixels, of_group * pixels, epsilon_of(call));
  for (int64_t plane = 0; plane < x.shape()[0] * channels; ++plane) {
    const auto c = static_cast<size_t>(plane % channels / (channels / count));
    for (int64_t i = plane * pixels; i < (plane + 1) * pixels; ++i) to[i] = to[i] * scale[c] + offset[c];
  }
  return {out};
}

Tensors group_normalization(const Call& call) {
  return normalize_groups(call, call.int_attribute("num_groups", 0));
}

Tensors instance_normalization(const Call& call) {
  return normalize_groups(call, floats_with_channels(call).shape()[1]);
}

// With the means and the inverse deviations of the rows as further results.
Tensors layer_normalization(const Call& call) {
  const Tensor& x = call.input(0);
  require(x.type() == Type::kFloat && x.rank() >= 1, "should read floats, not ", type_name(x.type()),
          shape_text(x.shape()));
  const size_t axis = normal_axis(call.int_attribute("axis", -1), x.rank());
  const int64_t count = element_count({x.shape().begin() + static_cast<int64_t>(axis), x.shape().end()});
  const auto scale = floats_of(call, 1, count, "scale");
  Shape of_rows(x.shape().begin(), x.shape().begin() + static_cast<int64_t>(axis));
  of_rows.resize(x.rank(), 1);
  const auto offset = call.optional(2) ? floats_of(call, 2, count, "offset") : std::span<const float>();
  Tensor out = call.memory().make<float>(x.shape()), means = call.memory().make<float>(of_rows),
         factors = call.memory().make<float>(of_rows);
  require(out.size() > 0 || means.size() == 0, "rows of ", shape_text(x.shape()), " are empty");
  const float* const from = x.values<float>().data();
  float* const to = out.mutable_values<float>().data();
  for (int64_t row = 0; row < out.size(); row += count) {
    const Statistics found = normalize(from + row, to + row, count, epsilon_of(call));
    means.mutable_values<float>()[static_cast<size_t>(row / count)] = found.mean;
    factors.mutable_values<float>()[static_cast<size_t>(row / count)] = found.factor;
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      to[row + i] = to[row + i] * scale[at] + (offset.empty() ? 0.0f : offset[at]);
    }
  }
  return {out, means, factors};
}

void check_groups(const AttributeReader& attributes) {
  const int64_t groups = attributes.int_attribute("num_groups", 0);
  require(groups >= 1, "num_groups is ", groups, ", expected 1 or more");
}

void check_batch_normalization(const AttributeReader& attributes) {
  require(attributes.int_attribute("training_mode", 0) == 0,
          "is in training mode, which a network that is deployed is not");
}

}  // namespace

std::vector<Operator> normalization_operators() {
  return {{"BatchNormalization",
           batch_normalization,
           5,
           5,
           1,
           Typing::kFirst,
           {"epsilon", "momentum", "training_mode"},
           check_batch_normalization},
          {"InstanceNormalization", instance_normalization, 3, 3, 1, Typing::kFirst, {"epsilon"}},
          {"GroupNormalization",
           group_normalization,
           3,
           3,
           1,
           Typing::kFirst,
           {"epsilon", "num_groups", "stash_type"},
           check_groups},
          {"LayerNormalization", layer_normalization, 2, 3, 3, Typing::kFirst, {"axis", "epsilon", "stash_type"}}};
}

}  // namespace octet::dense
