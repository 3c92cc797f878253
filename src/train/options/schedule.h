// Learning-rate schedules: a factor on the base rate as a pure function of progress and of what the validation has
// measured so far, so that a resumed run continues exactly.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schema/enum_names.h"

namespace octet::train {

enum class ScheduleType {
  kConstant,
  kStep,
  kCosine,
  kLinear,
  kPolynomial,
  kSoftStartAnnealing,
  kEarlyStoppingAnnealing
};
std::span<const schema::EnumName<ScheduleType>> enum_names(ScheduleType);

// Where a decay has its start: at the end of the warm-up, or at that of the training, so that it has gone on when the
// warm-up ends.
enum class DecayFrom { kWarmup, kStart };
std::span<const schema::EnumName<DecayFrom>> enum_names(DecayFrom);

// With s steps done of S, and w in warm-up: the rate rises linearly, lr (s + 1) / w for s < w, so that no step is lost
// at a rate of 0. After that, with q = (s - w) / (S - w), it is
//   constant    lr
//   step        lr gamma^n, n: of the points that are reached (torch.optim.lr_scheduler.MultiStepLR)
//   cosine      min_lr + (lr - min_lr) (1 + cos(pi q)) / 2
//   linear      min_lr + (lr - min_lr) (1 - q)
//   polynomial  min_lr + (lr - min_lr) (1 - q)^power
// as get_{constant,cosine,linear,polynomial_decay}_schedule_with_warmup of Hugging Face. DecayFrom::kStart: q = (s + 1)
// / S, as in the PolyWarmUpScheduler of NVIDIA's BERT.
struct ScheduleOptions {
  ScheduleType type = ScheduleType::kCosine;
  double warmup = 0.05;      // fraction of the training; not used by the two of TAO
  double warmup_epochs = 0;  // 0: `warmup` says it
  int64_t warmup_steps = 0;  // 0: the others say it
  DecayFrom decay_from = DecayFrom::kWarmup;
  double min_lr = 0.0;                      // end of cosine, linear and polynomial; low end of the two of TAO
  double power = 1;                         // polynomial
  std::vector<double> steps = {0.5, 0.75};  // step: fractions of the training at which the rate is multiplied by gamma
  std::vector<double> milestones;           // step: the same in epochs; empty: `steps` says it
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
  int64_t steps_per_epoch = 1;            // of what counts in epochs
  std::optional<int64_t> annealing_from;  // early_stopping_annealing: EarlyStopping::annealing_from
};

// The factor on the rate `lr` for the next step.
double schedule_factor(const ScheduleOptions& options, double lr, const Progress& progress);

}  // namespace octet::train
