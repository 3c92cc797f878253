// Penalties on the weights that are part of the loss (Keras' and so TAO's regularizers; weight decay of the optimizer
// is another thing: Adam divides the gradient of a penalty by its size).
#pragma once
#include <span>

#include "schema/enum_names.h"

namespace octet::train {

enum class RegularizerType { kNone, kL1, kL2 };
std::span<const schema::EnumName<RegularizerType>> enum_names(RegularizerType);

struct RegularizerOptions {
  RegularizerType type = RegularizerType::kNone;
  double weight = 3e-9;  // l1: weight * sum |w|; l2: weight * sum w^2
};
void describe(schema::Section& s, RegularizerOptions& regularizer);

}  // namespace octet::train
