// The training loop. What is descended comes from a Loss, what is measured from a Validation, progress goes to a
// TrainListener, so the loop knows neither of tasks nor of screens. A run that is killed and started again gives the
// same bytes as one that was not: batches, dropout and schedule are functions of (seed, epoch, step), everything else
// is in the checkpoint.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/loader.h"
#include "train/communicator.h"
#include "train/executor.h"
#include "train/loss.h"
#include "train/optimizer.h"
#include "train/options/train_options.h"

namespace octet::train {

// How the network is measured between epochs and at the end.
struct Validation {
  // Metrics of the executed graph as it stands; nothing: there is no validation, the last epoch is the best.
  std::function<std::map<std::string, double>(Executor& executor)> evaluate;
  std::string metric;  // the one that decides which epoch is the best
  bool larger_is_better = true;
};

// What is trained. Nothing is owned. Of several ranks each has its own loader, with as many batches an epoch; rank 0
// writes and reads the checkpoints, shares them with the others, and is the one that tells its listener.
struct Training {
  ir::Graph& network;         // is saved, and holds the weights at the end
  const ir::Graph& executed;  // is run: over the same constants by name, with the outputs that `loss` takes
  data::Loader& loader;
  Loss& loss;
  Validation validation;
  Communicator& communicator = single_process();
};

struct StepRecord {
  int64_t epoch;        // 1-based
  int64_t step, steps;  // within the epoch; 1-based
  double loss;
  std::vector<std::pair<std::string, double>> loss_parts;
  double learning_rate;
  int64_t images;          // of this step, on all ranks
  double loss_factor = 1;  // of loss scaling, after the step
};

class TrainListener {
 public:
  virtual ~TrainListener() = default;
  virtual void on_resume(const checkpoint::RunState& run) {}
  // Before the first step of an epoch, or of what is left of it behind `done` of its `steps`.
  virtual void on_epoch_start(int64_t epoch, int64_t done, int64_t steps) {}
  virtual void on_step(const StepRecord& step) {}
  virtual void on_epoch(const checkpoint::EpochRecord& epoch) {}
};

// What the experiment says, and what the program adds to it.
struct TrainerOptions : TrainOptions {
  std::filesystem::path checkpoints;     // folder; `best` in it holds the best model
  std::string fingerprint;               // of the experiment: checkpoints of another are refused
  MixedPrecision mixed;                  // what `precision` and `amp` come to
  ExecutorOptions executor;              // has the device, the seed and these types (executor_options)
  std::function<bool()> stop_requested;  // asked after every step; true on any rank: save and stop
};

// How a network is executed that is trained so.
ExecutorOptions executor_options(const TrainOptions& options, const MixedPrecision& mixed,
                                 const quant::ScaleAveraging& averaging);

struct TrainResult {
  checkpoint::RunState run;
  bool stopped = false;  // by stop_requested, before the last epoch was done
};

// Trains the network in place: on return it holds the weights that options.final_model asks for; the best ones are in
// options.checkpoints, too. Continues from the newest checkpoint in options.checkpoints if there is one.
// UserError when the loss is not finite (with epoch and step), when a checkpoint belongs to another experiment, or when
// a file cannot be written.
TrainResult train(const Training& training, const TrainerOptions& options, TrainListener* listener = nullptr);

}  // namespace octet::train
