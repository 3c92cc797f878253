// What DetectNet_v2 descends (TAO's cost_function): cross-entropy of the coverage and the distance of the borders, each
// the mean over batch and grid, summed over the classes.
#pragma once
#include "tasks/detectnet_v2/options.h"
#include "train/loss.h"

namespace octet::tasks::detectnet_v2 {

// Parts: coverage, boxes.
class Loss : public train::Loss {
 public:
  explicit Loss(LossOptions options) : options_(std::move(options)) {}
  train::LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override;

 private:
  LossOptions options_;
};

}  // namespace octet::tasks::detectnet_v2
