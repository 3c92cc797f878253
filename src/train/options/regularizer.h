// Penalties on the weights that are part of the loss (Keras' and so TAO's regularizers; weight decay of the optimizer
// is another thing: Adam divides the gradient of a penalty by its size).
#pragma once
#include <span>

#include "schema/enum_names.h"

namespace octet::train {

// l1, l2     weight * sum |w|, weight * sum w^2, over weights and biases of convolutions and products
// range      weight * sum of the largest |w| of each output channel of these weights: keeps ranges short before they
// are
//            quantized (the L-infinity term of Kundu et al. 2023, arXiv 2303.08253, here per scale)
// dampening  weight * sum (clip(w) - fake_quantize(w))^2 over quantized weights: draws them to their codes, against
//            oscillation between two of them at few bits (Nagel et al. 2022, arXiv 2203.11086, equation 7)
enum class RegularizerType { kNone, kL1, kL2, kRange, kDampening };
std::span<const schema::EnumName<RegularizerType>> enum_names(RegularizerType);

struct RegularizerOptions {
  RegularizerType type = RegularizerType::kNone;
  double weight = 3e-9;
};
void describe(schema::Section& s, RegularizerOptions& regularizer);

}  // namespace octet::train
