// A teacher: a loss around the loss of a task, which adds how far tensors of the network are from those of another one
// on the same batch. The teacher runs in evaluation mode and without autograd; it is part of no checkpoint.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "train/executor.h"
#include "train/loss.h"
#include "train/options/distill_options.h"

namespace octet::train {

class Distillation : public Loss {
 public:
  // `student` and `teacher`: executed graphs, of which `inner` (not owned) takes the student's outputs. UserError (exit
  // 2), with the nearest name, for a tensor that is not there, and for two of different shapes.
  Distillation(Loss& inner, const ir::Graph& student, const ir::Graph& teacher, const DistillOptions& options,
               const ExecutorOptions& executor);

  // What the trainer executes instead of `student`: the same with the tensors of the bindings as further outputs.
  const ir::Graph& student() const { return student_; }

  // The parts of `inner`, and "distill/TENSOR" for each binding.
  LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override;
  void end_epoch(Communicator& communicator) override { inner_.end_epoch(communicator); }
  void save(checkpoint::NamedTensors& state) const override { inner_.save(state); }
  void load(const checkpoint::NamedTensors& state) override { inner_.load(state); }

 private:
  struct Pair {
    DistillBinding binding;
    size_t student, teacher;  // outputs of the two graphs
  };

  Loss& inner_;
  DistillOptions options_;
  ir::Graph student_;
  size_t outputs_;  // that inner_ takes
  std::vector<Pair> pairs_;
  std::optional<Executor> teacher_;
};

}  // namespace octet::train
