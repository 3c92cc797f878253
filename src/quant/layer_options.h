// Settings of quantization for some layers alone.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quant/calibrator.h"
#include "quant/node_selection.h"
#include "quant/weight_calibrator.h"

namespace octet::quant {

// What holds for the nodes that `nodes` selects: for the activations that they read and for their weights. What is not
// given is as for all. A tensor that several nodes read, and a node that several entries select, go by the first entry
// that says something of the setting.
struct LayerOptions {
  NodeSelector nodes;
  std::optional<CalibrationMethod> method;
  bool any_percentile = true;  // not given
  double percentile = 99.99;
  std::optional<bool> skip_zeros;
  bool any_activation_bits = true, any_weight_bits = true;
  int64_t activation_bits = 8, weight_bits = 8;
  std::optional<bool> asymmetric;
  std::optional<WeightMethod> weight_method;
  std::optional<bool> weights_per_tensor;

  bool says_of_activations() const {  // how they are calibrated
    return method || !any_percentile || skip_zeros;
  }
};
void describe(schema::Section& s, LayerOptions& layer);

// What `quant.layers` say of calibration, by the names of tensors. Placement itself sees to the rest.
struct LayerCalibration {
  std::map<std::string, LayerOptions> activations;
  std::map<std::string, WeightMethod> weights;
};

// `options` with what the layers say: behind their own `tensors`, which name tensors and so count more.
CalibrationOptions with_layers(CalibrationOptions options, const LayerCalibration& layers);
WeightCalibrationOptions with_layers(WeightCalibrationOptions options, const LayerCalibration& layers);

}  // namespace octet::quant
