// What DetectNet_v2 descends (TAO's cost_function): for each class the cross-entropy of its coverage and the distance
// of its borders, each the mean over batch and grid. With a class's share s of the class weights and the weights w of
// its two objectives, which sum up to 1 at first, the loss is the sum of s * w * cost.
#pragma once
#include "tasks/detectnet_v2/loss_options.h"
#include "train/loss.h"

namespace octet::tasks::detectnet_v2 {

// Parts: coverage, boxes.
class Loss : public train::Loss {
 public:
  explicit Loss(LossOptions options) : options_(std::move(options)), mask_(options_.mask) {}
  train::LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override;

  // Says after the first epoch which filters of the mask chose no object. The rest is autoweighting's; without it there
  // is nothing to keep.
  void end_epoch(train::Communicator& communicator) override;
  void save(checkpoint::NamedTensors& state) const override;
  void load(const checkpoint::NamedTensors& state) override;

  // Of each objective (coverage, boxes) and class as they are: [2, classes], float64 on the CPU. Undefined before the
  // first batch.
  const at::Tensor& objective_weights() const { return weights_; }

 private:
  // For a network of so many classes.
  void start(int64_t classes);

  LossOptions options_;
  LossMask mask_;
  at::Tensor weights_, cost_sums_;                  // [2, classes]; the sums: of the epoch so far
  at::Tensor class_shares_, targets_, foreground_;  // [classes], [2, classes], [classes]
};

}  // namespace octet::tasks::detectnet_v2
