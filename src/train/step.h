// One step of a training: forward, loss, backward, clip, update.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "data/loader.h"
#include "train/executor.h"
#include "train/loss.h"
#include "train/optimizer.h"

namespace octet::train {

struct StepLoss {
  double total = 0;
  std::vector<std::pair<std::string, double>> parts;  // as the Loss names them
};

class TrainStep {
 public:
  // Nothing is owned. `clip_grad_norm`: largest norm of all gradients together; 0: off.
  TrainStep(Executor& executor, Optimizer& optimizer, Loss& loss, double clip_grad_norm)
      : executor_(executor), optimizer_(optimizer), loss_(loss), clip_grad_norm_(clip_grad_norm) {}

  // `factor`: of the optimizer's rates. Where the loss is not finite the parameters stay as they are.
  StepLoss operator()(const data::Batch& batch, double factor);

 private:
  Executor& executor_;
  Optimizer& optimizer_;
  Loss& loss_;
  double clip_grad_norm_;
};

// The images as [N, C, H, W]; borrowed from the batch.
at::Tensor images_of(const data::Batch& batch);

}  // namespace octet::train
