#include "app/weight_ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/axes.h"
#include "numerics/quantize.h"

namespace octet::app {
namespace {

bool quantizes_weights(const ir::Node& node) {
  return node.kind == ir::OpKind::kFakeQuantize && node.input(0)->is_constant() && node.input(1)->is_constant() &&
         node.input(2)->is_constant() && node.input(0)->constant->shape().size() > 1;
}

WeightRange range_of(const ir::Node& node) {
  const ir::Tensor& weights = *node.input(0)->constant;
  const std::vector<float> values = weights.to_floats(), scales = node.input(1)->constant->to_floats();
  const std::vector<int64_t> zeros = node.input(2)->constant->to_ints();
  const ir::Shape& shape = weights.shape();
  size_t inner = 1;
  if (scales.size() > 1)
    for (size_t d = ir::normal_axis(node, node.get_int("axis", 1), shape.size()) + 1; d < shape.size(); ++d)
      inner *= static_cast<size_t>(shape[d]);
  WeightRange out{.tensor = node.input(0)->name, .shape = shape};
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  const auto [least_scale, largest_scale] = std::minmax_element(scales.begin(), scales.end());
  if (values.empty()) return out;
  out.least = *least, out.largest = *largest;
  out.least_scale = *least_scale, out.largest_scale = *largest_scale;
  double signal = 0, noise = 0;
  int64_t clipped = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t c = i / inner % scales.size();
    const numerics::QuantParams params{scales[c], static_cast<int32_t>(zeros[zeros.size() == 1 ? 0 : c]),
                                       static_cast<int32_t>(node.get_int("qmin")),
                                       static_cast<int32_t>(node.get_int("qmax"))};
    const double error = static_cast<double>(values[i]) - numerics::fake_quantize(values[i], params);
    // Beyond the last code by more than rounding.
    clipped += std::abs(error) > 0.5 * params.scale * (1 + 1e-6);
    signal += static_cast<double>(values[i]) * values[i];
    noise += error * error;
  }
  out.clipped = static_cast<double>(clipped) / static_cast<double>(values.size());
  out.sqnr_db = noise > 0 ? 10 * std::log10(signal / noise) : std::numeric_limits<double>::infinity();
  return out;
}

}  // namespace

std::vector<WeightRange> weight_ranges(const ir::Graph& graph) {
  std::vector<WeightRange> out;
  for (const auto& node : graph.nodes())
    if (quantizes_weights(*node)) out.push_back(range_of(*node));
  return out;
}

}  // namespace octet::app
