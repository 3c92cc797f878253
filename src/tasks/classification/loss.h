// Cross-entropy with label smoothing (Szegedy et al. 2016).
#pragma once
#include "train/loss.h"

namespace octet::tasks::classification {

// Of logits, one part. `label_smoothing` in [0, 1).
class Loss : public train::Loss {
 public:
  explicit Loss(double label_smoothing) : label_smoothing_(label_smoothing) {}
  train::LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override;

 private:
  double label_smoothing_;
};

}  // namespace octet::tasks::classification
