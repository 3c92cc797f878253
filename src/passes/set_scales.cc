#include "passes/set_scales.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "ir/axes.h"
#include "ir/query.h"
#include "numerics/range_params.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Tensor;
using ir::Value;

bool quantizes_weights(const Node& node) {
  return is_quantizer(&node) && node.input(0)->is_constant();
}

int largest_code(const Node& node) {
  return static_cast<int>(node.get_int("qmax") - node.input(2)->constant->to_ints().at(0));
}

std::vector<float> scales_of_weights(const Node& node, quant::WeightCalibrationOptions options) {
  const Tensor& weight = *node.input(0)->constant;
  if (const auto own = options.methods.find(node.input(0)->name); own != options.methods.end())
    options.method = own->second;
  options.levels = largest_code(node);
  int axis = -1;
  if (!node.input(1)->constant->shape().empty()) {
    axis = static_cast<int>(ir::normal_axis(node, node.get_int("axis"), weight.shape().size()));
  }
  return quant::weight_scales(weight, axis, node.input(0)->name, options);
}

// What the quantizers that share a scale are to cover.
struct Covered {
  float scale = 0;
  bool asymmetric = false;
  float low = 0, high = 0;
  Node* quantizer = nullptr;  // one of them
};

void replace_zero_point(Value* value, int32_t zero_point) {
  value->constant = value->type.data_type == ir::DataType::kUInt8 ? Tensor::scalar(static_cast<uint8_t>(zero_point))
                                                                  : Tensor::scalar(static_cast<int8_t>(zero_point));
}

void replace_scale(Value* value, const std::vector<float>& scales) {
  value->constant = Tensor::of<float>(value->constant->shape(), scales);
}

}  // namespace

int set_scales(Graph& graph, const std::map<std::string, quant::Range>& ranges,
               const quant::WeightCalibrationOptions& weights) {
  int set = 0;
  std::map<Value*, Covered> activations;
  for (const auto& node : graph.nodes()) {
    if (!is_quantizer(node.get())) continue;
    ++set;
    const bool asymmetric = quant::is_asymmetric(*node);
    node->attributes["state"] = std::string(ir::kFrozen);
    if (quantizes_weights(*node)) {
      replace_scale(node->input(1), scales_of_weights(*node, weights));
      continue;
    }
    const std::string& tensor = node->input(0)->name;
    const auto it = ranges.find(tensor);
    if (it == ranges.end())
      fail("quantizer '", node->name, "': calibration has no range for tensor '", tensor,
           "'; calibrate the model with the placement rules it is quantized with");
    const quant::Range& range = it->second;
    Covered& covered = activations[node->input(1)];
    covered.quantizer = node.get();
    covered.asymmetric |= asymmetric;
    if (asymmetric && range.count == 0)
      fail_usage("quantizer '", node->name, "' is asymmetric, and the range of '", tensor,
                 "' has no ends of its own, as those of calibration caches; leave quant.activations.asymmetric out");
    covered.low = std::min(covered.low, std::max(range.min, -range.amax));
    covered.high = std::max(covered.high, std::min(range.max, range.amax));
    if (range.amax > 0) {
      covered.scale = std::max(covered.scale, range.scale(largest_code(*node)));
    } else {
      log_warning("tensor '", tensor, "' was always zero in calibration; are the images the right ones?");
    }
  }
  for (const auto& [value, covered] : activations) {
    if (covered.scale <= 0 || !covered.asymmetric) {
      replace_scale(value, {covered.scale > 0 ? covered.scale : 1.0f});
      if (covered.asymmetric) replace_zero_point(covered.quantizer->input(2), 0);
      continue;
    }
    const numerics::QuantParams params =
        numerics::params_of_range(covered.low, covered.high, static_cast<int32_t>(covered.quantizer->get_int("qmin")),
                                  static_cast<int32_t>(covered.quantizer->get_int("qmax")));
    replace_scale(value, {params.scale});
    replace_zero_point(covered.quantizer->input(2), params.zero_point);
  }
  return set;
}

void refresh_weight_scales(Graph& graph, float averaging_constant, const quant::WeightCalibrationOptions& weights) {
  OCTET_CHECK(averaging_constant >= 0 && averaging_constant <= 1, averaging_constant);
  if (averaging_constant == 0) return;
  for (const auto& node : graph.nodes()) {
    if (!quantizes_weights(*node)) continue;
    std::vector<float> scales = scales_of_weights(*node, weights);
    const std::vector<float> old = node->input(1)->constant->to_floats();
    for (size_t c = 0; c < scales.size(); ++c)
      scales[c] = (1.0f - averaging_constant) * old[c] + averaging_constant * scales[c];
    replace_scale(node->input(1), scales);
  }
}

}  // namespace octet::passes
