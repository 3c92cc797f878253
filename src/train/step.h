// One step of a training: forward, loss, backward, what the ranks agree on, clip, update.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "data/loader.h"
#include "train/communicator.h"
#include "train/executor.h"
#include "train/gradient_reducer.h"
#include "train/loss.h"
#include "train/loss_scaler.h"
#include "train/optimizer.h"
#include "train/regularizer.h"

namespace octet::train {

// Nothing is owned.
struct StepOptions {
  double clip_grad_norm = 0;  // largest norm of all gradients together; 0: off
  Communicator& communicator = single_process();
  LossScaler* scaler = nullptr;              // null: the loss is descended as it is
  PartScalers* part_scalers = nullptr;       // instead of it: each part is descended by itself, by its own backward
  ReductionOptions reduction;                // of gradients between ranks
  int accumulate = 1;                        // batches of a step: the mean of their losses is descended
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

  // The first batches of a step of several, without traffic of gradients. Then operator() with the last one.
  void accumulate(const data::Batch& batch);
  // `factor`: of the optimizer's rates. The ranks descend the mean of their losses: after the step they hold the same
  // parameters, running statistics (the mean) and scales (the largest, that of all images).
  StepLoss operator()(const data::Batch& batch, double factor);

 private:
  // Forward and backward. Losses: the sum of the parts, and the parts.
  void learn(const data::Batch& batch);
  // Adds the gradients of `share` of the sum of all parts to part_gradients_.
  void descend_apart(const LossParts& parts, double share);
  void update_part_scalers();
  // The step's losses, means over its batches and all ranks; running statistics become those of all ranks.
  at::Tensor agree();

  Executor& executor_;
  Optimizer& optimizer_;
  Loss& loss_;
  StepOptions options_;
  GradientReducer reducer_;
  std::vector<at::Tensor> statistics_, scales_;  // the executor's buffers
  std::vector<std::string> part_names_;
  std::vector<at::Tensor> part_gradients_;  // of all parts in the batches of the step so far, float32, unscaled
  at::Tensor part_overflows_;  // [part]: 1 where one of its gradients was not finite in a batch of the step, else 0
  at::Tensor losses_;          // summed over the batches of the step so far
  int batches_ = 0;            // of it
};

// The images as [N, C, H, W]; borrowed from the batch.
at::Tensor images_of(const data::Batch& batch);

}  // namespace octet::train
