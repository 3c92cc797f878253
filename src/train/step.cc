#include "train/step.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"

namespace octet::train {

StepLoss TrainStep::operator()(const data::Batch& batch, double factor) {
  const LossParts parts = loss_(executor_.forward({images_of(batch)}, Mode::kTrain), batch);
  OCTET_CHECK(!parts.empty());
  at::Tensor total = parts[0].second;
  for (size_t i = 1; i < parts.size(); ++i) total = total + parts[i].second;
  total.backward();
  StepLoss out{.total = total.item<double>(), .parts = {}};
  for (const auto& [name, part] : parts) out.parts.emplace_back(name, part.item<double>());
  if (std::isfinite(out.total)) {
    if (clip_grad_norm_ > 0) optimizer_.clip_grad_norm(clip_grad_norm_);
    optimizer_.step(factor);
  }
  optimizer_.zero_grad();
  return out;
}

at::Tensor images_of(const data::Batch& batch) {
  return at::from_blob(const_cast<float*>(batch.images.data()), {batch.size, batch.channels, batch.height, batch.width},
                       at::kFloat);
}

}  // namespace octet::train
