// What an experiment's network learns from: the loss of the task, and a teacher where there is one.
#pragma once
#include <memory>

#include "ir/graph.h"
#include "spec/experiment.h"
#include "train/executor.h"
#include "train/loss.h"

namespace octet::app {

struct Lesson {
  ir::Graph executed;                            // what is run in the place of the network
  std::unique_ptr<train::Loss> task_loss, loss;  // loss: what is descended; it uses task_loss
};

// For `network`, by the options of the stage. The teacher runs as `executor` says. UserError (exit 2) for a teacher
// that is none of the task, has quantizers, or does not fit.
Lesson lesson_of(const spec::ExperimentSpec& spec, const train::TrainOptions& schedule,
                 const train::ExecutorOptions& executor, const ir::Graph& network);

}  // namespace octet::app
