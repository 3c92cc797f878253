// Which scales stage qat trains as parameters, and by whose gradient (train/fake_quant.h).
#pragma once
#include <span>

#include "schema/enum_names.h"

namespace octet::quant {

enum class ScaleGradient {
  kNo,
  kLsq,
  kLsqPlus,
  kPact
};  // no: scales stay, or follow what they see (scale_averaging.h)
std::span<const schema::EnumName<ScaleGradient>> enum_names(ScaleGradient);

struct ScaleTraining {
  ScaleGradient activations = ScaleGradient::kNo;
  ScaleGradient weights = ScaleGradient::kNo;  // none or LSQ: the others are about activations
};

}  // namespace octet::quant
