// The training loop. What a task optimises and measures comes from a Task, progress goes to a TrainListener, so the loop
// knows neither of losses nor of screens. A run that is killed and started again gives the same bytes as one that was
// not: batches, dropout and schedule are functions of (seed, epoch, step), everything else is in the checkpoint.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/loader.h"
#include "checkpoint/checkpoint.h"
#include "train/executor.h"
#include "train/optimizer.h"
#include "train/options/train_options.h"

namespace octet::train {

class Task {
 public:
  virtual ~Task() = default;
  // What is executed in the place of `network`: a graph over the same constants by name, with outputs that loss() takes.
  // What is saved is the network.
  virtual ir::Graph executed_graph(const ir::Graph& network) const { return network.clone(); }
  // Scalar loss of one batch from the executed graph's outputs.
  virtual at::Tensor loss(const std::vector<at::Tensor>& outputs, const data::Batch& batch) = 0;
  // Metrics of the network as it stands. Called between epochs and at the end.
  virtual std::map<std::string, double> evaluate(Executor& executor) = 0;
  // The metric (larger is better) that decides which epoch is the best; empty: there is no evaluation, the last is.
  virtual std::string primary_metric() const = 0;
};

struct StepRecord {
  int64_t epoch;       // 1-based
  int64_t step, steps;  // within the epoch; 1-based
  double loss;
  double learning_rate;
  int64_t images;  // of this batch
};

class TrainListener {
 public:
  virtual ~TrainListener() = default;
  virtual void on_resume(const checkpoint::RunState& run) {}
  virtual void on_step(const StepRecord& step) {}
  virtual void on_epoch(const checkpoint::EpochRecord& epoch) {}
};

// What the experiment says, and what the program adds to it.
struct TrainerOptions : TrainOptions {
  std::filesystem::path checkpoints;  // folder; `best` in it holds the best model
  std::string fingerprint;            // of the experiment: checkpoints of another are refused
  ExecutorOptions executor;           // has the device, the seed and the resolved precision (executor_options)
  std::function<bool()> stop_requested;  // asked after every step; true: save and stop
};

// How a network is executed that is trained so.
ExecutorOptions executor_options(const TrainOptions& options, const quant::ScaleAveraging& averaging);

struct TrainResult {
  checkpoint::RunState run;
  bool stopped = false;  // by stop_requested, before the last epoch was done
};

// Trains `graph` in place: on return it holds the weights of the best epoch (by the primary metric), or of the last one
// when there is no evaluation. Continues from the newest checkpoint in options.checkpoints if there is one. UserError
// when the loss is not finite (with epoch and step), when a checkpoint belongs to another experiment, or when a file
// cannot be written.
TrainResult train(ir::Graph& graph, data::Loader& loader, Task& task, const TrainerOptions& options,
                  TrainListener* listener = nullptr);

}  // namespace octet::train
