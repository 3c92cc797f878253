// What an experiment says of loss scaling; names as TAO's cost_scaling of DetectNet_v2.
#pragma once

namespace octet::schema {
class Section;
}

namespace octet::train {

// The loss is multiplied by 2^floor(x) before backward, and the gradients of all ranks are divided by it. A power of
// two changes no digit, so nothing but overflow and underflow depends on it.
struct CostScalingOptions {
  bool enabled = false;
  double initial_exponent = 20;  // x at the start
  double increment = 0.005;      // of x, after a step whose gradients are all finite
  double decrement = 1;          // of x, after one with others, which changes nothing else
  // Such a step is one with gradients of zero: momenta fade, and Adam counts it.
  bool tao_compatible = false;
};
void describe(schema::Section& s, CostScalingOptions& scaling);

}  // namespace octet::train
