#include "train/options/loss_scale.h"

#include "schema/schema.h"

namespace octet::train {

void describe(schema::Section& s, LossScaleOptions& scale) {
  s.field("init_scale", scale.init_scale)
      .above(0, 1e38)
      .known_elsewhere_as({"init_loss_scale"})
      .help("Factor at the start. 32768 is TensorFlow's, 1048576 that of NVIDIA's BERT.");
  s.field("growth_factor", scale.growth_factor)
      .range(1, 1e6)
      .known_elsewhere_as({"scale_factor"})
      .help("On the factor, after growth_interval steps without an overflow.");
  s.field("backoff_factor", scale.backoff_factor).above(0, 1).help("On the factor, after an overflow.");
  s.field("growth_interval", scale.growth_interval)
      .range(1, 1e9)
      .unit("steps")
      .known_elsewhere_as({"scale_window", "loss_scale_window"})
      .help("Without an overflow, after which the factor grows.");
  s.field("min_loss_scale", scale.min_loss_scale).range(0, 1e38).help("Least factor. 0: none.");
  s.field("max_loss_scale", scale.max_loss_scale)
      .range(0, 1e38)
      .help("Greatest factor, as apex.amp has it. 0: none, as torch.amp.GradScaler.");
}

LossScaleOptions static_loss_scale(double factor) {
  return {.init_scale = factor, .growth_factor = 1, .backoff_factor = 1, .max_loss_scale = 0};
}

}  // namespace octet::train
