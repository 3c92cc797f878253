#include "train/step.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace octet::train {
namespace {

bool is_scale(const ir::Value& buffer) {
  return std::any_of(buffer.users.begin(), buffer.users.end(),
                     [](const ir::Node* user) { return user->kind == ir::OpKind::kFakeQuantize; });
}

}  // namespace

TrainStep::TrainStep(Executor& executor, Optimizer& optimizer, Loss& loss, const StepOptions& options)
    : executor_(executor), optimizer_(optimizer), loss_(loss), options_(options) {
  for (const auto& [name, buffer] : executor.named_buffers())
    (is_scale(*executor.graph().find_value(name)) ? scales_ : statistics_).push_back(buffer);
}

StepLoss TrainStep::operator()(const data::Batch& batch, double factor) {
  LossParts parts = loss_(executor_.forward({images_of(batch)}, Mode::kTrain), batch);
  OCTET_CHECK(!parts.empty());
  if (options_.regularizer) parts.emplace_back("regularization", (*options_.regularizer)());
  at::Tensor total = parts[0].second;
  for (size_t i = 1; i < parts.size(); ++i) total = total + parts[i].second;
  (options_.scaler ? options_.scaler->scale(total) : total).backward();
  std::vector<at::Tensor> gradients = optimizer_.gradients();
  const at::Tensor losses = agree(total, parts, gradients);
  StepLoss out{.total = losses[0].item<double>()};
  for (size_t i = 0; i < parts.size(); ++i)
    out.parts.emplace_back(parts[i].first, losses[static_cast<int64_t>(i) + 1].item<double>());
  out.updated = options_.scaler ? options_.scaler->unscale(gradients) : std::isfinite(out.total);
  if (out.updated) {
    if (options_.clip_grad_norm > 0) optimizer_.clip_grad_norm(options_.clip_grad_norm);
    optimizer_.step(factor);
  }
  optimizer_.zero_grad();
  return out;
}

at::Tensor TrainStep::agree(const at::Tensor& total, const LossParts& parts, const std::vector<at::Tensor>& gradients) {
  std::vector<at::Tensor> losses = {total.detach().to(at::kDouble).reshape({})};
  for (const auto& [name, part] : parts) losses.push_back(part.detach().to(at::kDouble).reshape({}));
  std::vector<at::Tensor> means = gradients;
  means.insert(means.end(), statistics_.begin(), statistics_.end());
  means.push_back(at::stack(losses));
  options_.communicator.all_reduce(means, Reduce::kMean);
  // The rank whose images reach farthest has the scale of all of them.
  options_.communicator.all_reduce(scales_, Reduce::kMax);
  return means.back().to(at::kCPU);
}

at::Tensor images_of(const data::Batch& batch) {
  return at::from_blob(const_cast<float*>(batch.images.data()), {batch.size, batch.channels, batch.height, batch.width},
                       at::kFloat);
}

}  // namespace octet::train
