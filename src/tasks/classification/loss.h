// Cross-entropy with label smoothing (Szegedy et al. 2016).
#pragma once
#include "tasks/classification/task.h"
#include "train/loss.h"

namespace octet::tasks::classification {

// Of logits, one part.
class Loss : public train::Loss {
 public:
  explicit Loss(const Options& options) : label_smoothing_(options.label_smoothing) {}
  train::LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override;

 private:
  double label_smoothing_;
};

}  // namespace octet::tasks::classification
