#include "tasks/classification/loss.h"

#include <ATen/ATen.h>

namespace octet::tasks::classification {

std::unique_ptr<train::Loss> make_loss(const tasks::Task& task) {
  return std::make_unique<Loss>(dynamic_cast<const Task&>(task).options());
}

train::LossParts Loss::operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) {
  const at::Tensor& logits = outputs.at(0);
  require_labels(batch, logits.size(1));
  std::vector<int64_t> labels = batch.labels();
  const at::Tensor target = at::from_blob(labels.data(), {batch.size}, at::kLong).clone().to(logits.device());
  return {{"cross_entropy", at::cross_entropy_loss(logits, target, {}, at::Reduction::Mean, -100, label_smoothing_)}};
}

}  // namespace octet::tasks::classification
