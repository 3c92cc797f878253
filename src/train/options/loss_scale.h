// How the factor of a loss moves; names as torch.amp.GradScaler's and, for the bounds, apex.amp's.
#pragma once
#include <cstdint>

namespace octet::schema {
class Section;
}

namespace octet::train {

// The factor is a float32. The defaults are apex.amp's, which are torch.amp's with a cap.
struct LossScaleOptions {
  double init_scale = 65536;
  double growth_factor = 2, backoff_factor = 0.5;  // 1 and 1: a static factor
  int64_t growth_interval = 2000;                  // steps without an overflow, after which it grows
  double min_loss_scale = 0;                       // 0: none
  double max_loss_scale = 16777216;                // 0: what float32 holds; growth beyond that is dropped
};
void describe(schema::Section& s, LossScaleOptions& scale);

LossScaleOptions static_loss_scale(double factor);

}  // namespace octet::train
