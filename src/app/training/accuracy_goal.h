// Reaching an accuracy goal: with LibTorch, which ranks the layers, corrects biases and rounds weights.
#pragma once
#include "app/accuracy_goal.h"

namespace octet::app {

// `options` as they are resolved for the task. UserError (exit 2) for a network that is none of the task of `spec`.
AccuracySearch reach_accuracy(const ir::Graph& network, const spec::ExperimentSpec& spec,
                              const quant::QuantOptions& options, const AccuracyGoal& goal);

}  // namespace octet::app
