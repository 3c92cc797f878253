// Learning-rate schedules: a factor on the base rate as a pure function of progress, so that a resumed run continues
// exactly.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "schema/enum_names.h"

namespace octet::train {

enum class ScheduleType { kConstant, kStep, kCosine, kLinear, kSoftStart };
std::span<const schema::EnumName<ScheduleType>> enum_names(ScheduleType);

// In warm-up the rate rises linearly from 0 to lr; the rest of the schedule runs over what remains.
struct ScheduleOptions {
  ScheduleType type = ScheduleType::kCosine;
  double warmup = 0.05;                     // fraction of the training; not used by soft_start
  double min_lr = 0.0;                      // end of cosine and linear; low end of soft_start
  std::vector<double> steps = {0.5, 0.75};  // step: fractions of the training at which the rate is multiplied by gamma
  double gamma = 0.1;
  double soft_start = 0.1;  // soft_start: TAO's soft-start annealing, log-linear up until here, ...
  double annealing = 0.7;   // ... and log-linear down from here
};
void describe(schema::Section& s, ScheduleOptions& schedule);

// The factor on the rate `lr` in step `step` (0-based) of `total` steps.
double schedule_factor(const ScheduleOptions& options, double lr, int64_t step, int64_t total);

}  // namespace octet::train
