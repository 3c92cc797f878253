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

// UserError (exit 2) where the task has no loss of its own, and the options of the stage name no teacher.
void require_lesson(const spec::ExperimentSpec& spec, const train::TrainOptions& schedule);

// For `network`, by the options of the stage. The teacher runs as `executor` says. UserError (exit 2) for a teacher
// that is none of the task, has quantizers, or does not fit. Requires what require_lesson() does.
Lesson lesson_of(const spec::ExperimentSpec& spec, const train::TrainOptions& schedule,
                 const train::ExecutorOptions& executor, const ir::Graph& network);

}  // namespace octet::app
