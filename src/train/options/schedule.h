// Learning-rate schedules: a factor on the base rate as a pure function of progress and of what the validation has
// measured so far, so that a resumed run continues exactly.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schema/enum_names.h"

namespace octet::train {

enum class ScheduleType { kConstant, kStep, kCosine, kLinear, kSoftStartAnnealing, kEarlyStoppingAnnealing };
std::span<const schema::EnumName<ScheduleType>> enum_names(ScheduleType);

// In warm-up the rate rises linearly from 0 to lr; the rest of the schedule runs over what remains.
struct ScheduleOptions {
  ScheduleType type = ScheduleType::kCosine;
  double warmup = 0.05;                     // fraction of the training; not used by the two of TAO
  double min_lr = 0.0;                      // end of cosine and linear; low end of the two of TAO
  std::vector<double> steps = {0.5, 0.75};  // step: fractions of the training at which the rate is multiplied by gamma
  double gamma = 0.1;
  // TAO's schedules of DetectNet_v2 move on a logarithmic scale: exp(ln min_lr + t (ln lr - ln min_lr)).
  // soft_start_annealing: t rises from 0 to 1 until `soft_start`, falls to 0 from `annealing` to the end (fractions of
  // the training); 0 and 1 leave the ramp out.
  double soft_start = 0.1, annealing = 0.7;
  // early_stopping_annealing: t rises to 1 in `soft_start_epochs`; when, after that, the validation has not improved
  // for `patience_steps` epochs, it falls to 0 in `annealing_epochs` and stays there, and when the validation has not
  // improved for as long after that, the training ends. 0 epochs leave the ramp out.
  int64_t soft_start_epochs = 1, annealing_epochs = 10, patience_steps = 5;
};
void describe(schema::Section& s, ScheduleOptions& schedule);

// A measurement after an epoch; `value`: NaN is worse than any number.
struct Measurement {
  int64_t epoch;  // 1-based, ascending
  double value;
};

// What early_stopping_annealing makes of the measurements.
struct EarlyStopping {
  std::optional<int64_t> annealing_from;  // epochs done when the rate began to fall
  bool stop = false;
};
EarlyStopping early_stopping(const ScheduleOptions& options, std::span<const Measurement> measurements,
                             bool larger_is_better);

// Where a training stands.
struct Progress {
  int64_t step = 0, total = 0;            // steps done, and all
  int64_t steps_per_epoch = 1;            // early_stopping_annealing
  std::optional<int64_t> annealing_from;  // early_stopping_annealing: EarlyStopping::annealing_from
};

// The factor on the rate `lr` for the next step.
double schedule_factor(const ScheduleOptions& options, double lr, const Progress& progress);

}  // namespace octet::train
