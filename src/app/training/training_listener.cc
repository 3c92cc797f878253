#include "app/training/training_listener.h"

#include <cstdio>

#include "base/error.h"
#include "base/log.h"
#include "report/format.h"

namespace octet::app {
namespace {}  // namespace

TrainingListener::TrainingListener(const std::filesystem::path& results, std::string stage,
                                   const train::TrainOptions& options, int64_t images_per_epoch,
                                   ValidationPictures* pictures)
    : stage_(std::move(stage)),
      epochs_(options.epochs),
      images_per_epoch_(images_per_epoch),
      steps_between_points_(options.visualizer.scalar_logging_frequency),
      pictures_(pictures),
      status_(results / "status.jsonl"),
      events_(results / "events") {
  status_.write(
      {.kind = "train", .status = report::RunStatus::kStarted, .message = "stage " + stage_, .max_epoch = epochs_});
}

void TrainingListener::on_resume(const checkpoint::RunState& run) {
  log_info("going on after epoch ", run.epochs_done, " of ", epochs_,
           run.batches_done > 0 ? str(" and ", run.batches_done, " batches") : "");
  status_.write({.kind = "train", .message = "resumed", .epoch = run.epochs_done, .max_epoch = epochs_});
}

void TrainingListener::on_epoch_start(int64_t epoch, int64_t done, int64_t steps) {
  images_ = done * images_per_epoch_ / steps;
  progress_ = std::make_unique<report::Progress>(report::ProgressOptions{
      .label = str(stage_, " epoch ", epoch, "/", epochs_), .total = images_per_epoch_, .start = images_});
  tell_what_follows(epoch);
}

void TrainingListener::tell_what_follows(int64_t epoch) {
  progress_->set_later((epochs_ - epoch) * images_per_epoch_,
                       static_cast<double>(epochs_ - epoch) * seconds_between_epochs_);
}

void TrainingListener::on_step(const train::StepRecord& step) {
  images_ += step.images;
  last_step_ = std::chrono::steady_clock::now();
  if (progress_) progress_->update(images_, "loss " + report::fixed(step.loss, 4));
  const int64_t global = (step.epoch - 1) * step.steps + step.step;
  if (global % steps_between_points_ == 0) {
    events_.scalar("train/loss", global, step.loss);
    if (step.loss_parts.size() > 1)
      for (const auto& [name, value] : step.loss_parts) events_.scalar("train/loss/" + name, global, value);
    events_.scalar("train/learning_rate", global, step.learning_rate);
    if (step.loss_factor != 1) events_.scalar("train/loss_factor", global, step.loss_factor);
  }
}

void TrainingListener::on_epoch(const checkpoint::EpochRecord& epoch) {
  std::string metrics = "loss " + report::fixed(epoch.loss, 4);
  std::map<std::string, double> kpi = epoch.metrics;
  for (const auto& [name, value] : epoch.metrics) {
    events_.scalar("val/" + name, epoch.epoch, value);
    metrics += "  " + name + " " + report::fixed(value, name.find("loss") == std::string::npos ? 2 : 4);
  }
  events_.scalar("train/epoch_loss", epoch.epoch, epoch.loss);
  if (pictures_)
    for (const DrawnPicture& picture : pictures_->take())
      events_.image(picture.tag, epoch.epoch, picture.png, picture.width, picture.height);
  kpi["loss"] = epoch.loss;
  kpi["seconds"] = epoch.seconds;
  // Validation and checkpoint lie behind the last step.
  seconds_between_epochs_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - last_step_).count();
  if (progress_) {
    tell_what_follows(epoch.epoch);
    progress_->finish(metrics, epoch.seconds);
  }
  progress_.reset();
  status_.write({.kind = "epoch", .message = metrics, .epoch = epoch.epoch, .max_epoch = epochs_, .kpi = kpi});
}

void TrainingListener::finish(bool success, const std::string& message) {
  progress_.reset();
  status_.write({.kind = "train",
                 .status = success ? report::RunStatus::kSuccess : report::RunStatus::kFailure,
                 .verbosity = success ? "INFO" : "ERROR",
                 .message = message});
}

}  // namespace octet::app
