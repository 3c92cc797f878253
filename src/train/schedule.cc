#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace octet::train {

double schedule_factor(const ScheduleOptions& o, int64_t step, int64_t total) {
  const double progress = total > 0 ? static_cast<double>(step) / static_cast<double>(total) : 1.0;
  if (o.type == "soft_start") {
    const double low = std::max(o.min_factor, 1e-8);
    if (progress < o.soft_start) return low * std::pow(1.0 / low, progress / o.soft_start);
    if (progress < o.annealing) return 1.0;
    return std::pow(low, (progress - o.annealing) / std::max(1.0 - o.annealing, 1e-12));
  }
  const auto warmup_steps = static_cast<int64_t>(std::llround(o.warmup * static_cast<double>(total)));
  if (step < warmup_steps) return static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  const double after = total > warmup_steps
                           ? static_cast<double>(step - warmup_steps) / static_cast<double>(total - warmup_steps)
                           : 1.0;
  if (o.type == "constant") return 1.0;
  if (o.type == "cosine") return o.min_factor + (1 - o.min_factor) * 0.5 * (1 + std::cos(std::numbers::pi * after));
  if (o.type == "linear") return o.min_factor + (1 - o.min_factor) * (1 - after);
  if (o.type == "step") {
    double factor = 1.0;
    for (double milestone : o.milestones)
      if (progress >= milestone) factor *= o.gamma;
    return factor;
  }
  fail_usage("unknown schedule type '", o.type, "'; one of constant, step, cosine, linear, soft_start");
}

}  // namespace octet::train
