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
  LossScaler* scaler = options_.scaler;
  const GradientUse use{.loss_factor = scaler ? scaler->factor() : 1,
                        .max_norm = options_.clip_grad_norm,
                        .check = scaler || options_.part_scalers};
  at::Tensor overflows;  // by part
  if (options_.part_scalers) {
    overflows = descend_apart(parts);
  } else {
    (scaler ? total * use.loss_factor : total).backward();
  }
  std::vector<at::Tensor> gradients = optimizer_.gradients();
  const at::Tensor losses = agree(total, parts, gradients);
  StepLoss out{.total = losses[0].item<double>()};
  for (size_t i = 0; i < parts.size(); ++i)
    out.parts.emplace_back(parts[i].first, losses[static_cast<int64_t>(i) + 1].item<double>());
  if (use.check || std::isfinite(out.total)) {
    const UpdateResult result = optimizer_.step(factor, use);
    out.updated = result.made;
    out.grad_norm = result.norm;
  }
  if (scaler) {
    scaler->update(out.updated);
    if (!out.updated && scaler->steps_on_overflow()) {
      for (at::Tensor& gradient : gradients) gradient.zero_();
      out.updated = optimizer_.step(factor).made;
    }
  }
  for (size_t i = 0; overflows.defined() && i < parts.size(); ++i)
    options_.part_scalers->of(parts[i].first).update(overflows[static_cast<int64_t>(i)].item<float>() == 0);
  optimizer_.zero_grad();
  return out;
}

at::Tensor TrainStep::descend_apart(const LossParts& parts) {
  std::vector<at::Tensor> sums, overflows;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [name, part] = parts[i];
    const double factor = options_.part_scalers->of(name).factor();
    if (part.requires_grad()) (part * factor).backward({}, /*retain_graph=*/i + 1 < parts.size());
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& gradient : optimizer_.gradients()) gradients.push_back(gradient.to(at::kFloat));
    optimizer_.zero_grad();
    overflows.push_back(at::zeros({1}, part.options().dtype(at::kFloat).requires_grad(false)));
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, overflows.back(),
                                                   at::full({1}, 1 / factor, overflows.back().options()));
    if (sums.empty()) {
      sums = std::move(gradients);
    } else {
      at::_foreach_add_(sums, gradients);
    }
  }
  optimizer_.set_gradients(sums);
  at::Tensor overflow = at::cat(overflows);
  options_.communicator.all_reduce({&overflow, 1}, Reduce::kMax);
  return overflow.to(at::kCPU);
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
