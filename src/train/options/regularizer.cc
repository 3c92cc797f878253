#include "train/options/regularizer.h"

#include "schema/schema.h"

namespace octet::train {

OCTET_ENUM_NAMES(RegularizerType, {RegularizerType::kNone, "none"}, {RegularizerType::kL1, "l1"},
                 {RegularizerType::kL2, "l2"}, {RegularizerType::kRange, "range"},
                 {RegularizerType::kDampening, "dampening"})

void describe(schema::Section& s, RegularizerOptions& regularizer) {
  s.field("type", regularizer.type)
      .help(
          "Penalty on weights and biases of convolutions and products, part of the loss. l1: sum of magnitudes, which "
          "makes weights that pruning takes; l2: sum of squares; range: sum of the largest magnitudes of output "
          "channels, which makes weights that few bits suit; dampening: sum of the squared distances of quantized "
          "weights from their codes, in stage qat below 8 bits.");
  s.field("weight", regularizer.weight).range(0, 1000).help("Factor of the sum.");
}

}  // namespace octet::train
