// Evaluation of quantizers, by numerics/: float32, bit for bit what trainer and engine compute.
#include "ir/evaluate_parts.h"
#include "ir/evaluate_rules.h"
#include "numerics/quantize.h"

namespace octet::ir {
namespace {

// f(x, scale and zero point of x) of every element, by one scale and zero point for the tensor, or one for each index
// of the axis.
template <typename F>
Tensors computed(const Node& node, MemoryBudget& budget, int64_t low, int64_t high, F f) {
  const Shape& shape = output_shape(node);
  budget.charge(8 * element_count(shape));
  std::vector<double> values = doubles_of(node, 0);
  const std::vector<float> scales = tensor_of(node, 1).to_floats();
  const std::vector<int64_t> zeros =
      node.has_input(2) ? tensor_of(node, 2).to_ints() : std::vector<int64_t>(scales.size(), 0);
  size_t inner = 1;
  if (scales.size() > 1)
    for (size_t d = normal_axis(node, node.get_int("axis", 1), shape.size()) + 1; d < shape.size(); ++d)
      inner *= static_cast<size_t>(shape[d]);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t c = i / inner % scales.size();
    values[i] = f(values[i], numerics::QuantParams{scales[c], static_cast<int32_t>(zeros[c]), static_cast<int32_t>(low),
                                                   static_cast<int32_t>(high)});
  }
  return only_output(node, values);
}

}  // namespace

Tensors evaluate_quantize(const Node& node, MemoryBudget& budget) {
  if (!is_float(tensor_of(node, 0).data_type())) return std::nullopt;
  const bool is_signed = node.output()->type.data_type == DataType::kInt8;
  return computed(node, budget, is_signed ? -128 : 0, is_signed ? 127 : 255,
                  [](double x, const auto& p) { return numerics::quantize(static_cast<float>(x), p); });
}

Tensors evaluate_dequantize(const Node& node, MemoryBudget& budget) {
  // In int64: a bias less its zero point may be beyond int32.
  return computed(node, budget, 0, 0, [](double q, const auto& p) {
    return static_cast<float>(static_cast<int64_t>(q) - p.zero_point) * p.scale;
  });
}

Tensors evaluate_fake_quantize(const Node& node, MemoryBudget& budget) {
  if (node.get_string("state", kFrozen) == kObserving) return {{tensor_of(node, 0)}};
  if (!is_float(tensor_of(node, 0).data_type())) return std::nullopt;
  return computed(node, budget, node.get_int("qmin"), node.get_int("qmax"),
                  [](double x, const auto& p) { return numerics::fake_quantize(static_cast<float>(x), p); });
}

}  // namespace octet::ir
