// What an experiment says about a training: its sections `train` and `finetune`.
#pragma once
#include <cstdint>
#include <string>

#include "train/options/amp.h"
#include "train/options/cost_scaling.h"
#include "train/options/distill_options.h"
#include "train/options/non_finite.h"
#include "train/options/optimizer_options.h"
#include "train/options/precision.h"
#include "train/options/reduction.h"
#include "train/options/regularizer.h"
#include "train/options/schedule.h"
#include "train/options/visualizer.h"

namespace octet::train {

// An exponential moving average of the weights.
struct EmaOptions {
  bool enable = false;
  double decay = 0.999;  // per step
};
void describe(schema::Section& s, EmaOptions& ema);

// Which weights a training ends with: those of the best epoch by the validation's metric (of the last one where there
// is no validation), or those of the last epoch.
enum class FinalModel { kBest, kLast };
std::span<const schema::EnumName<FinalModel>> enum_names(FinalModel);

// What several workers, and accumulated batches, make of the learning rate: with n times the images a step it is the
// same, n times as much, or sqrt(n) times.
enum class LrScaling { kNone, kLinear, kSqrt };
std::span<const schema::EnumName<LrScaling>> enum_names(LrScaling);
double lr_scale(LrScaling rule, double times_the_images);

struct TrainOptions {
  int64_t epochs = 30;
  int64_t batch_size_per_gpu = 64;
  Precision precision = Precision::kAuto;
  AmpOptions amp;
  std::string device = "cpu";  // or cuda
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  RegularizerOptions regularizer;
  CostScalingOptions cost_scaling;
  DistillOptions distill;
  EmaOptions ema;
  double clip_grad_norm = 0.0;  // 0: off
  int64_t accumulate = 1;       // batches of a step
  LrScaling lr_scaling = LrScaling::kNone;
  NonFiniteOptions non_finite;           // loss
  bool sync_batch_norm = true;           // of several workers
  ReductionOptions reduction;            // of theirs
  int64_t freeze_batch_norm_after = -1;  // epochs; from then on its statistics are constants; -1: never
  int64_t batch_norm_images = 0;         // whose statistics take the place of the running ones at the end; 0: of none
  int64_t freeze_ranges_after = -1;      // epochs; from then on no scale of a quantizer follows what it sees; -1: never
  int64_t seed = 1;
  int64_t checkpoint_interval = 1;  // epochs
  int64_t keep_checkpoints = 2;     // the newest; the best is kept besides
  int64_t evaluate_interval = 1;    // epochs; the last is always evaluated
  FinalModel final_model = FinalModel::kBest;
  VisualizerOptions visualizer;
  int64_t threads = 0;  // 0: as many as CPUs
};
void describe(schema::Section& s, TrainOptions& train);

}  // namespace octet::train
