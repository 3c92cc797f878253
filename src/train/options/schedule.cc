#include "train/options/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "schema/schema.h"

namespace octet::train {

OCTET_ENUM_NAMES(ScheduleType, {ScheduleType::kConstant, "constant"}, {ScheduleType::kStep, "step"},
                 {ScheduleType::kCosine, "cosine"}, {ScheduleType::kLinear, "linear"},
                 {ScheduleType::kSoftStart, "soft_start"})

void describe(schema::Section& s, ScheduleOptions& schedule) {
  s.field("type", schedule.type)
      .known_elsewhere_as({"name", "policy"})
      .help("How the learning rate moves; it is set at every step.");
  s.field("warmup", schedule.warmup)
      .range(0, 1)
      .unit("fraction of the training")
      .help("The rate rises linearly from 0 to lr over this part (soft_start has its own).");
  s.field("min_lr", schedule.min_lr)
      .range(0, 1000)
      .known_elsewhere_as({"min_learning_rate", "eta_min"})
      .help("cosine, linear: rate at the end. soft_start: rate at both ends, more than 0.");
  s.field("steps", schedule.steps)
      .range(0, 1)
      .length(0, 100)
      .unit("fractions of the training")
      .known_elsewhere_as({"milestones"})
      .help("step: points at which the rate is multiplied by gamma, ascending.");
  s.field("gamma", schedule.gamma).above(0, 1).help("step: factor at each point.");
  s.field("soft_start", schedule.soft_start)
      .range(0, 1)
      .unit("fraction of the training")
      .help("soft_start: the rate rises (on a logarithmic scale) from min_lr to lr until here.");
  s.field("annealing", schedule.annealing)
      .range(0, 1)
      .unit("fraction of the training")
      .help("soft_start: the rate falls back to min_lr from here.");
  s.rule("steps", [&schedule] {
    return std::is_sorted(schedule.steps.begin(), schedule.steps.end()) ? "" : "must be in ascending order";
  });
  s.rule("min_lr", [&schedule] {
    const bool missing = schedule.type == ScheduleType::kSoftStart && schedule.min_lr <= 0;
    return missing ? "must be more than 0 for the type soft_start" : "";
  });
  s.rule("soft_start", [&schedule] {
    const bool late = schedule.type == ScheduleType::kSoftStart && schedule.soft_start > schedule.annealing;
    return late ? "must not be more than annealing" : "";
  });
}

double schedule_factor(const ScheduleOptions& o, double lr, int64_t step, int64_t total) {
  const double progress = total > 0 ? static_cast<double>(step) / static_cast<double>(total) : 1.0;
  const double min_factor = o.min_lr / lr;
  if (o.type == ScheduleType::kSoftStart) {
    const double low = std::max(min_factor, 1e-8);
    if (progress < o.soft_start) return low * std::pow(1.0 / low, progress / o.soft_start);
    if (progress < o.annealing) return 1.0;
    return std::pow(low, (progress - o.annealing) / std::max(1.0 - o.annealing, 1e-12));
  }
  const auto warmup_steps = static_cast<int64_t>(std::llround(o.warmup * static_cast<double>(total)));
  if (step < warmup_steps) return static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  const double after =
      total > warmup_steps ? static_cast<double>(step - warmup_steps) / static_cast<double>(total - warmup_steps) : 1.0;
  switch (o.type) {
    case ScheduleType::kCosine:
      return min_factor + (1 - min_factor) * 0.5 * (1 + std::cos(std::numbers::pi * after));
    case ScheduleType::kLinear:
      return min_factor + (1 - min_factor) * (1 - after);
    case ScheduleType::kStep: {
      double factor = 1.0;
      for (const double milestone : o.steps)
        if (progress >= milestone) factor *= o.gamma;
      return factor;
    }
    case ScheduleType::kConstant:
    case ScheduleType::kSoftStart:
      break;
  }
  return 1.0;
}

}  // namespace octet::train
