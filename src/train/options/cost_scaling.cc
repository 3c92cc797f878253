#include "train/options/cost_scaling.h"

#include "schema/schema.h"

namespace octet::train {

void describe(schema::Section& s, CostScalingOptions& scaling) {
  s.field("enabled", scaling.enabled)
      .help("Multiply the loss by 2^x before backward, against gradients too small for a low type.");
  s.field("initial_exponent", scaling.initial_exponent).range(-60, 120).help("x at the start.");
  s.field("increment", scaling.increment).range(0, 60).help("Of x, after a step whose gradients are finite.");
  s.field("decrement", scaling.decrement)
      .above(0, 60)
      .help("Of x, after a step with gradients that are not; the weights stay.");
  s.field("tao_compatible", scaling.tao_compatible)
      .help(
          "A step with gradients that are not finite is made with zeros: momenta fade and Adam counts it, as in TAO.");
}

}  // namespace octet::train
