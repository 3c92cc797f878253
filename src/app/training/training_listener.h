// What a person and other programs see of a training run: a progress bar or log lines, status.jsonl, TensorBoard
// events, and history.json, from which the report draws its curves.
#pragma once
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "app/training/validation_pictures.h"
#include "report/progress.h"
#include "report/status_log.h"
#include "report/tensorboard.h"
#include "train/trainer.h"

namespace octet::app {

class TrainingListener : public train::TrainListener {
 public:
  // `pictures`: drawn at each validation; null: none. Not owned.
  TrainingListener(const std::filesystem::path& results, std::string stage, const train::TrainOptions& options,
                   int64_t images_per_epoch, ValidationPictures* pictures);
  void on_resume(const checkpoint::RunState& run) override;
  void on_epoch_start(int64_t epoch, int64_t done, int64_t steps) override;
  void on_step(const train::StepRecord& step) override;
  void on_epoch(const checkpoint::EpochRecord& epoch) override;
  // The last line of status.jsonl.
  void finish(bool success, const std::string& message);

 private:
  // From the end of the epoch to that of the run, for the progress.
  void tell_what_follows(int64_t epoch);

  std::string stage_;
  int64_t epochs_, images_per_epoch_, images_ = 0, steps_between_points_;
  ValidationPictures* pictures_;
  report::StatusLog status_;
  report::EventWriter events_;
  std::unique_ptr<report::Progress> progress_;
  std::chrono::steady_clock::time_point last_step_ = std::chrono::steady_clock::now();
  double seconds_between_epochs_ = 0;  // for validation and checkpoint, as last seen
};

}  // namespace octet::app
