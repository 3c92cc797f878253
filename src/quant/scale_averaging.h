// How the scales of FakeQuantize nodes follow what they see in training, once a step:
//   scale = (1 - c) * scale + c * current_scale, current_scale = amax / levels.
#pragma once

namespace octet::quant {

struct ScaleAveraging {
  double activations = 0;  // c in [0, 1]; 0: calibrated scales stay frozen
  double weights = 1;      // 1: scales follow the weights
};

}  // namespace octet::quant
