#include "train/options/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "schema/schema.h"

namespace octet::train {
namespace {

bool is_logarithmic(ScheduleType type) {
  return type == ScheduleType::kSoftStartAnnealing || type == ScheduleType::kEarlyStoppingAnnealing;
}

// t of the header.
double soft_start_annealing(const ScheduleOptions& o, double progress) {
  if (progress < o.soft_start) return progress / o.soft_start;
  return progress > o.annealing ? (1 - progress) / (1 - o.annealing) : 1.0;
}

double early_stopping_annealing(const ScheduleOptions& o, const Progress& p) {
  const auto share = [&](int64_t since, int64_t epochs) {
    return epochs > 0
               ? std::min(1.0, static_cast<double>(p.step - since) / static_cast<double>(epochs * p.steps_per_epoch))
               : 1.0;
  };
  if (!p.annealing_from) return share(0, o.soft_start_epochs);
  return o.annealing_epochs > 0 ? 1 - share(*p.annealing_from * p.steps_per_epoch, o.annealing_epochs) : 1.0;
}

int64_t warmup_steps(const ScheduleOptions& o, const Progress& at) {
  if (o.warmup_steps > 0) return o.warmup_steps;
  const double steps = o.warmup_epochs > 0 ? o.warmup_epochs * static_cast<double>(at.steps_per_epoch)
                                           : o.warmup * static_cast<double>(at.total);
  return static_cast<int64_t>(std::llround(steps));
}

double multistep(const ScheduleOptions& o, const Progress& at) {
  const auto step = static_cast<double>(at.step);
  double factor = 1.0;
  for (const double epoch : o.milestones)
    if (step >= epoch * static_cast<double>(at.steps_per_epoch)) factor *= o.gamma;
  if (!o.milestones.empty()) return factor;
  const double progress = at.total > 0 ? step / static_cast<double>(at.total) : 1.0;
  for (const double fraction : o.steps)
    if (progress >= fraction) factor *= o.gamma;
  return factor;
}

// What of 1 is left at q of the header.
double decayed(const ScheduleOptions& o, double q) {
  switch (o.type) {
    case ScheduleType::kCosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * q));
    case ScheduleType::kLinear:
      return 1 - q;
    case ScheduleType::kPolynomial:
      return std::pow(1 - q, o.power);
    default:
      return 1;
  }
}

}  // namespace

OCTET_ENUM_NAMES(ScheduleType, {ScheduleType::kConstant, "constant"}, {ScheduleType::kStep, "step"},
                 {ScheduleType::kCosine, "cosine"}, {ScheduleType::kLinear, "linear"},
                 {ScheduleType::kPolynomial, "polynomial"}, {ScheduleType::kSoftStartAnnealing, "soft_start_annealing"},
                 {ScheduleType::kEarlyStoppingAnnealing, "early_stopping_annealing"})

OCTET_ENUM_NAMES(DecayFrom, {DecayFrom::kWarmup, "warmup"}, {DecayFrom::kStart, "start"})

void describe(schema::Section& s, ScheduleOptions& schedule) {
  s.field("type", schedule.type)
      .known_elsewhere_as({"name", "policy"})
      .help("How the learning rate moves; it is set at every step.");
  s.field("warmup", schedule.warmup)
      .range(0, 1)
      .unit("fraction of the training")
      .known_elsewhere_as({"warmup_proportion", "warmup_ratio"})
      .help("The rate rises linearly from 0 to lr over this part (the two annealing types have their own).");
  s.field("warmup_epochs", schedule.warmup_epochs)
      .range(0, 100'000)
      .unit("epochs")
      .help("The same in epochs. 0: `warmup` counts.");
  s.field("warmup_steps", schedule.warmup_steps)
      .range(0, 1e12)
      .unit("steps")
      .known_elsewhere_as({"num_warmup_steps", "warmup_iters"})
      .help("The same in steps. 0: the others count.");
  s.field("decay_from", schedule.decay_from)
      .help(
          "cosine, linear, polynomial: whether the decay has its start at the end of the warm-up, or had it at the "
          "start of the training, as in NVIDIA's BERT.");
  s.field("min_lr", schedule.min_lr)
      .range(0, 1000)
      .known_elsewhere_as({"min_learning_rate", "eta_min"})
      .help("cosine, linear, polynomial: rate at the end. The annealing types: rate at both ends, more than 0.");
  s.field("power", schedule.power)
      .above(0, 100)
      .known_elsewhere_as({"degree"})
      .help("polynomial: exponent; 0.5 in the pretraining of NVIDIA's BERT, 1: linear.");
  s.field("steps", schedule.steps)
      .range(0, 1)
      .length(0, 100)
      .unit("fractions of the training")
      .help("step: points at which the rate is multiplied by gamma, ascending.");
  s.field("milestones", schedule.milestones)
      .range(0, 100'000)
      .length(0, 100)
      .unit("epochs")
      .known_elsewhere_as({"epochs", "step_epochs"})
      .help("step: the same points in epochs, as [30, 60, 80]; none: `steps` counts.");
  s.field("gamma", schedule.gamma).above(0, 1).help("step: factor at each point.");
  s.field("soft_start", schedule.soft_start)
      .range(0, 1)
      .unit("fraction of the training")
      .help("soft_start_annealing: the rate rises, on a logarithmic scale, from min_lr to lr until here. 0: at once.");
  s.field("annealing", schedule.annealing)
      .range(0, 1)
      .unit("fraction of the training")
      .help("soft_start_annealing: the rate falls back to min_lr from here. 1: it does not.");
  s.field("soft_start_epochs", schedule.soft_start_epochs)
      .range(0, 100'000)
      .unit("epochs")
      .help(
          "early_stopping_annealing: the rate rises, on a logarithmic scale, from min_lr to lr in these. 0: at once.");
  s.field("annealing_epochs", schedule.annealing_epochs)
      .range(0, 100'000)
      .unit("epochs")
      .help(
          "early_stopping_annealing: the rate falls back to min_lr in these, once the validation has not improved for "
          "patience_steps. 0: it does not.");
  s.field("patience_steps", schedule.patience_steps)
      .range(1, 100'000)
      .unit("epochs")
      .help(
          "early_stopping_annealing: so long without a better validation, and the rate falls; so long once more, and "
          "the training ends.");
  s.rule("steps", [&schedule] {
    return std::is_sorted(schedule.steps.begin(), schedule.steps.end()) ? "" : "must be in ascending order";
  });
  s.rule("milestones", [&schedule] {
    return std::is_sorted(schedule.milestones.begin(), schedule.milestones.end()) ? "" : "must be in ascending order";
  });
  s.rule("warmup_steps", [&schedule] {
    return schedule.warmup_steps > 0 && schedule.warmup_epochs > 0 ? "and warmup_epochs say the same; leave one out"
                                                                   : "";
  });
  s.rule("min_lr", [&schedule]() -> std::string {
    const bool missing = is_logarithmic(schedule.type) && schedule.min_lr <= 0;
    return missing ? str("must be more than 0 for the type ", schema::enum_name(schedule.type)) : "";
  });
  s.rule("soft_start", [&schedule] {
    const bool late = schedule.type == ScheduleType::kSoftStartAnnealing && schedule.soft_start > schedule.annealing;
    return late ? "must not be more than annealing" : "";
  });
}

EarlyStopping early_stopping(const ScheduleOptions& options, std::span<const Measurement> measurements,
                             bool larger_is_better) {
  EarlyStopping out;
  std::optional<Measurement> best;
  for (const Measurement& now : measurements) {
    if (!best || (larger_is_better ? now.value > best->value : now.value < best->value) || std::isnan(best->value)) {
      best = now;
    } else if (now.epoch - best->epoch >= options.patience_steps && now.epoch >= options.soft_start_epochs) {
      if (!out.annealing_from) {
        out.annealing_from = now.epoch;
        best = now;
      } else if (now.epoch - *out.annealing_from > options.annealing_epochs) {
        out.stop = true;
      }
    }
  }
  return out;
}

double schedule_factor(const ScheduleOptions& o, double lr, const Progress& at) {
  const auto step = static_cast<double>(at.step), total = static_cast<double>(at.total);
  const double min_factor = o.min_lr / lr;
  if (is_logarithmic(o.type)) {
    const double t = o.type == ScheduleType::kSoftStartAnnealing
                         ? soft_start_annealing(o, total > 0 ? step / total : 1.0)
                         : early_stopping_annealing(o, at);
    return std::exp((1 - t) * std::log(std::max(min_factor, 1e-12)));
  }
  const int64_t warmup = warmup_steps(o, at);
  if (at.step < warmup) return (step + 1) / static_cast<double>(warmup);
  if (o.type == ScheduleType::kConstant) return 1;
  if (o.type == ScheduleType::kStep) return multistep(o, at);
  const auto start = static_cast<double>(warmup);
  double q = total > start ? (step - start) / (total - start) : 1.0;
  if (o.decay_from == DecayFrom::kStart) q = total > 0 ? (step + 1) / total : 1.0;
  return min_factor + (1 - min_factor) * decayed(o, std::min(q, 1.0));
}

}  // namespace octet::train
