#include "quant/weight_calibrator.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "numerics/quantize.h"

namespace octet::quant {
namespace {

// The elements of one channel: `outer` runs of `inner` neighbors, `stride` apart.
struct Channel {
  const float* first;
  int64_t outer, inner, stride;

  template <typename Visit>
  void visit(Visit&& visitor) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) visitor(first[o * stride + i]);
  }
};

// Stops adding once `limit` is passed: such a threshold has lost.
double squared_error(const Channel& channel, float scale, int levels, double limit) {
  const numerics::QuantParams params{.scale = scale, .zero_point = 0, .qmin = -levels, .qmax = levels};
  double error = 0;
  for (int64_t o = 0; o < channel.outer && error < limit; ++o) {
    const float* run = channel.first + o * channel.stride;
    for (int64_t i = 0; i < channel.inner; ++i) {
      const double e = static_cast<double>(run[i]) - numerics::fake_quantize(run[i], params);
      error += e * e;
    }
  }
  return error;
}

float channel_scale(const Channel& channel, const WeightCalibrationOptions& options) {
  float amax = 0;
  channel.visit([&](float w) { amax = std::max(amax, std::fabs(w)); });
  const float full = numerics::scale_from_amax(amax, options.levels);
  if (options.method == WeightMethod::kMax || amax == 0) return full;
  float best = full;
  double best_error = squared_error(channel, full, options.levels, INFINITY);
  for (int percent = 99; percent >= 50; --percent) {
    const float scale = numerics::scale_from_amax(amax * static_cast<float>(percent) / 100, options.levels);
    const double error = squared_error(channel, scale, options.levels, best_error);
    if (error >= best_error) continue;
    best_error = error;
    best = scale;
  }
  return best;
}

}  // namespace

OCTET_ENUM_NAMES(WeightMethod, {WeightMethod::kMax, "max"}, {WeightMethod::kMse, "mse"})

std::vector<float> weight_scales(const ir::Tensor& weight, int axis, const std::string& name,
                                 const WeightCalibrationOptions& options) {
  const ir::Shape& shape = weight.shape();
  OCTET_CHECK(axis < static_cast<int>(shape.size()), "axis ", axis, " of ", ir::shape_string(shape));
  const bool plain = weight.data_type() == ir::DataType::kFloat32;
  const std::vector<float> converted = plain ? std::vector<float>() : weight.to_floats();
  const std::span<const float> values = plain ? weight.values<float>() : std::span<const float>(converted);
  // Its other sizes may be anything, also too many channels for memory.
  if (values.empty()) fail("weight '", name, "' of shape ", ir::shape_string(shape), " has no elements");
  for (const float w : values)
    if (!std::isfinite(w)) fail("weight '", name, "' holds ", w, "; the model is damaged or its training diverged");

  int64_t channels = 1, inner = static_cast<int64_t>(values.size());
  if (axis >= 0) {
    channels = shape[static_cast<size_t>(axis)];
    inner = 1;
    for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d) inner *= shape[d];
  }
  const int64_t outer = static_cast<int64_t>(values.size()) / (channels * inner);
  std::vector<float> scales;
  for (int64_t c = 0; c < channels; ++c)
    scales.push_back(channel_scale({values.data() + c * inner, outer, inner, channels * inner}, options));
  const float largest = *std::max_element(scales.begin(), scales.end());
  // All weights are zero: any scale represents them.
  const float floor = largest <= numerics::kMinScale ? 1.0f : largest * numerics::kLeastChannelScale;
  for (float& s : scales) s = std::max(s, floor);
  return scales;
}

}  // namespace octet::quant
