#include "passes/set_scales.h"

#include <algorithm>

#include "base/log.h"
#include "ir/axes.h"
#include "ir/query.h"

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
  options.levels = largest_code(node);
  int axis = -1;
  if (!node.input(1)->constant->shape().empty()) {
    axis = static_cast<int>(ir::normal_axis(node, node.get_int("axis"), weight.shape().size()));
  }
  return quant::weight_scales(weight, axis, node.input(0)->name, options);
}

void replace_scale(Value* value, const std::vector<float>& scales) {
  value->constant = Tensor::of<float>(value->constant->shape(), scales);
}

}  // namespace

int set_scales(Graph& graph, const std::map<std::string, quant::Range>& ranges,
               const quant::WeightCalibrationOptions& weights) {
  int set = 0;
  std::map<Value*, float> activation_scales;
  for (const auto& node : graph.nodes()) {
    if (!is_quantizer(node.get())) continue;
    ++set;
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
    float& scale = activation_scales[node->input(1)];
    if (it->second.amax > 0) {
      scale = std::max(scale, it->second.scale(largest_code(*node)));
    } else {
      log_warning("tensor '", tensor, "' was always zero in calibration; are the images the right ones?");
    }
  }
  for (const auto& [value, scale] : activation_scales) replace_scale(value, {scale > 0 ? scale : 1.0f});
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
