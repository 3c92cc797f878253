// One step of a training: forward, loss, backward, what the ranks agree on, clip, update.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "data/loader.h"
#include "train/communicator.h"
#include "train/executor.h"
#include "train/loss.h"
#include "train/loss_scaler.h"
#include "train/optimizer.h"
#include "train/regularizer.h"

namespace octet::train {

// Nothing is owned.
struct StepOptions {
  double clip_grad_norm = 0;  // largest norm of all gradients together; 0: off
  Communicator& communicator = single_process();
  LossScaler* scaler = nullptr;         // null: the loss is descended as it is
  PartScalers* part_scalers = nullptr;  // instead of it: each part is descended by itself, by a backward of its own
  const Regularizer* regularizer = nullptr;  // null: none; else its penalty is the last part, "regularization"
};

// Of the batches of all ranks together.
struct StepLoss {
  double total = 0;
  std::vector<std::pair<std::string, double>> parts;  // as the Loss names them
  double grad_norm = 0;  // before it was clipped; 0 where nothing asks for it (neither clip_grad_norm nor a scaler)
  bool updated = false;  // false: loss or gradients were not finite, and the parameters stayed as they were
};

class TrainStep {
 public:
  // Nothing is owned.
  TrainStep(Executor& executor, Optimizer& optimizer, Loss& loss, const StepOptions& options);

  // `factor`: of the optimizer's rates. The ranks descend the mean of their losses: after the step they hold the same
  // parameters, running statistics (the mean) and scales (the largest, that of all images).
  StepLoss operator()(const data::Batch& batch, double factor);

 private:
  // Leaves the gradients of the sum of all parts in the parameters, in float32. Gives 1 for each part of which one was
  // not finite on any rank, else 0.
  at::Tensor descend_apart(const LossParts& parts);
  // Loss and parts, means over all ranks; gradients and the executor's buffers become those of all ranks.
  at::Tensor agree(const at::Tensor& total, const LossParts& parts, const std::vector<at::Tensor>& gradients);

  Executor& executor_;
  Optimizer& optimizer_;
  Loss& loss_;
  StepOptions options_;
  std::vector<at::Tensor> statistics_, scales_;  // the executor's buffers
};

// The images as [N, C, H, W]; borrowed from the batch.
at::Tensor images_of(const data::Batch& batch);

}  // namespace octet::train
