// Scales of weights, one for each output channel.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/tensor.h"
#include "schema/enum_names.h"

namespace octet::quant {

enum class WeightMethod { kMax, kMse };
std::span<const schema::EnumName<WeightMethod>> enum_names(WeightMethod);

struct WeightCalibrationOptions {
  WeightMethod method = WeightMethod::kMax;
  std::map<std::string, WeightMethod> methods;  // of single tensors, by their names
  int levels = 127;                             // codes -127 .. 127
};

// One scale for each index of `axis` (negative: one for the whole tensor), from a tensor of any floating type.
//  max  scale_from_amax(largest magnitude, levels): TensorRT's own choice, and the only one that a calibration cache
//  allows. mse  of the thresholds 0.50, 0.51 .. 1.00 times the largest magnitude, that with the smallest squared error.
// `method` is what counts here; who knows the name of the tensor puts the one of `methods` there.
// UserError when a weight is NaN or infinite; `name` is the tensor's, for the message.
std::vector<float> weight_scales(const ir::Tensor& weight, int axis, const std::string& name,
                                 const WeightCalibrationOptions& options = {});

}  // namespace octet::quant
