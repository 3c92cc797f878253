// Learning-rate schedules: a factor on the base rate as a pure function of progress, so that a resumed run continues
// exactly.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace octet::train {

struct ScheduleOptions {
  // constant | step | cosine | linear | soft_start (TAO's soft_start_annealing_schedule)
  std::string type = "cosine";
  double warmup = 0.0;    // fraction of all steps with a linear rise from zero; not used by soft_start
  double min_factor = 0;  // the lowest factor that cosine, linear and soft_start end at
  std::vector<double> milestones;  // step: fractions of all steps at which the factor is multiplied by gamma
  double gamma = 0.1;
  double soft_start = 0.1;  // soft_start: fraction at which the full rate is reached, exponentially from min_factor
  double annealing = 0.7;   // soft_start: fraction from which the rate falls back to min_factor, exponentially
};

// Factor for step `step` (0-based) of `total` steps. UserError for an unknown type.
double schedule_factor(const ScheduleOptions& options, int64_t step, int64_t total);

}  // namespace octet::train
