#include "train/options/train_options.h"

#include <cmath>

#include "schema/schema.h"

namespace octet::train {

OCTET_ENUM_NAMES(FinalModel, {FinalModel::kBest, "best"}, {FinalModel::kLast, "last"})

OCTET_ENUM_NAMES(LrScaling, {LrScaling::kNone, "none"}, {LrScaling::kLinear, "linear"}, {LrScaling::kSqrt, "sqrt"})

double lr_scale(LrScaling rule, double times_the_images) {
  switch (rule) {
    case LrScaling::kLinear:
      return times_the_images;
    case LrScaling::kSqrt:
      return std::sqrt(times_the_images);
    case LrScaling::kNone:
      break;
  }
  return 1;
}

void describe(schema::Section& s, EmaOptions& ema) {
  s.field("enable", ema.enable).help("Keep a moving average of the weights; evaluate and export that.");
  s.field("decay", ema.decay).range(0, 1).unit("per step").help("Share of the old average that stays.");
}

void describe(schema::Section& s, TrainOptions& train) {
  s.field("epochs", train.epochs)
      .range(1, 100'000)
      .known_elsewhere_as({"num_epochs", "n_epochs", "max_epochs"})
      .help("Passes over the training images.");
  s.field("batch_size_per_gpu", train.batch_size_per_gpu)
      .range(1, 65'536)
      .unit("images")
      .known_elsewhere_as({"batch_size"})
      .help("Batch of each device (or of the CPU).");
  s.field("precision", train.precision)
      .known_elsewhere_as({"use_amp", "training_precision"})
      .help(
          "Type of convolutions and matrix products; weights, updates, batch norm and loss stay fp32. auto: bf16 where "
          "the hardware has it; with an opt level in `amp`, fp16.");
  s.section("amp", train.amp).help("Mixed precision as Apex has it: opt levels and loss scaling.");
  s.choice("device", train.device, {{"cpu", "cpu"}, {"cuda", "cuda"}}).help("Where to train.");
  s.section("optimizer", train.optimizer).help("Update of the weights.");
  s.section("schedule", train.schedule)
      .known_elsewhere_as({"lr_schedule", "lr_config", "lr_scheduler"})
      .help("Learning rate over time.");
  s.section("regularizer", train.regularizer)
      .known_elsewhere_as({"reg_config"})
      .help("Penalty on the weights, as in TAO; `optimizer.weight_decay` is another one.");
  s.section("cost_scaling", train.cost_scaling).help("Scaling of the loss by TAO's rule, instead of that of `amp`.");
  s.section("non_finite", train.non_finite).help("A loss that is infinite or NaN.");
  s.section("distill", train.distill).known_elsewhere_as({"distillation"}).help("Learning from a teacher, too.");
  s.section("ema", train.ema).known_elsewhere_as({"model_ema"}).help("Moving average of the weights.");
  s.field("clip_grad_norm", train.clip_grad_norm)
      .range(0, 1e9)
      .known_elsewhere_as({"max_grad_norm", "clip_grad"})
      .help("Largest norm of all gradients together; larger ones are scaled down. 0: off.");
  s.field("accumulate", train.accumulate)
      .range(1, 65'536)
      .unit("batches")
      .known_elsewhere_as({"gradient_accumulation_steps", "accumulate_grad_batches", "iter_size"})
      .help("Batches whose gradients make one step; workers agree once a step.");
  s.field("lr_scaling", train.lr_scaling)
      .help(
          "With n workers times accumulated batches: none keeps optimizer.lr, linear trains with n times that, as TAO "
          "does "
          "in all networks but DetectNet_v2, sqrt with the root of n times.");
  s.field("sync_batch_norm", train.sync_batch_norm)
      .known_elsewhere_as({"sync_bn", "sync_batchnorm", "use_sync_bn"})
      .help(
          "With several workers, batch norm over the images of all of them, as in one process with all; false: each "
          "over "
          "its own batch, as in TAO, which takes less time.");
  s.section("reduction", train.reduction).help("Traffic of gradients between workers.");
  s.field("freeze_batch_norm_after", train.freeze_batch_norm_after)
      .range(-1, 100'000)
      .unit("epochs")
      .written_when([&train] { return train.freeze_batch_norm_after >= 0; })
      .help("From then on batch norms use their running statistics and leave them alone. -1: never.");
  s.field("batch_norm_images", train.batch_norm_images)
      .range(0, 1e12)
      .unit("images")
      .written_when([&train] { return train.batch_norm_images > 0; })
      .help(
          "At the end, statistics of batch norms are measured anew on so many training images, for the weights that "
          "the "
          "training ends with: those of an average or of the best epoch, or quantized ones (qat_mode: with_bn). 0: the "
          "running statistics stay.");
  s.field("freeze_ranges_after", train.freeze_ranges_after)
      .range(-1, 100'000)
      .unit("epochs")
      .written_when([&train] { return train.freeze_ranges_after >= 0; })
      .help("From then on scales of quantizers stay as they are, whatever averaging_constant says. -1: never.");
  s.field("seed", train.seed).range(0, 9e15).known_elsewhere_as({"random_seed"}).help("Seed of the initial weights.");
  s.field("checkpoint_interval", train.checkpoint_interval)
      .range(1, 100'000)
      .unit("epochs")
      .help("Write a checkpoint every so many epochs, and at the end.");
  s.field("keep_checkpoints", train.keep_checkpoints)
      .range(1, 100'000)
      .help("Newest checkpoints that stay; the best one is kept besides.");
  s.field("evaluate_interval", train.evaluate_interval)
      .range(1, 100'000)
      .unit("epochs")
      .known_elsewhere_as({"validation_interval", "validation_period_during_training"})
      .help("Evaluate on `data.val` every so many epochs, and at the end.");
  s.field("final_model", train.final_model)
      .help(
          "Which weights NAME.onnx gets: of the best epoch by the first metric on `data.val`, or of the last one; the "
          "best are then in NAME.best.onnx.");
  s.section("visualizer", train.visualizer).help("What TensorBoard shows.");
  s.field("threads", train.threads)
      .range(0, 1024)
      .help(
          "Threads of the computation; 0: as many as CPUs. The bytes of the result depend on their number, as sums are "
          "split between them; a run that goes on keeps the number that it began with, and refuses another.");
  s.rule("amp.opt_level", [&train] { return complaint(train.precision, train.amp); });
  s.rule("cost_scaling.enabled", [&train] {
    return train.cost_scaling.enabled && train.amp.loss_scale != "auto" ? "and amp.loss_scale both scale the loss" : "";
  });
  s.rule("schedule.min_lr", [&train]() -> std::string {
    if (train.schedule.min_lr <= train.optimizer.lr) return "";
    return str("is ", schema::number_text(train.schedule.min_lr), ", more than optimizer.lr, ",
               schema::number_text(train.optimizer.lr));
  });
}

}  // namespace octet::train
