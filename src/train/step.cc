#include "train/step.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace octet::train {
namespace {

bool is_scale(const ir::Value& buffer) {
  return std::any_of(buffer.users.begin(), buffer.users.end(),
                     [](const ir::Node* user) { return user->kind == ir::OpKind::kFakeQuantize; });
}

std::vector<at::Tensor> tensors_of(const std::vector<std::pair<std::string, at::Tensor>>& named) {
  std::vector<at::Tensor> out;
  for (const auto& [name, tensor] : named) out.push_back(tensor);
  return out;
}

}  // namespace

TrainStep::TrainStep(Executor& executor, Optimizer& optimizer, Loss& loss, const StepOptions& options)
    : executor_(executor),
      optimizer_(optimizer),
      loss_(loss),
      options_(options),
      reducer_(tensors_of(executor.named_parameters()), options.communicator, options.reduction) {
  for (const auto& [name, buffer] : executor.named_buffers())
    (is_scale(*executor.graph().find_value(name)) ? scales_ : statistics_).push_back(buffer);
}

void TrainStep::accumulate(const data::Batch& batch) {
  OCTET_CHECK(batches_ + 1 < options_.accumulate, batches_, " batches of ", options_.accumulate);
  learn(batch);
}

StepLoss TrainStep::operator()(const data::Batch& batch, double factor) {
  OCTET_CHECK(batches_ + 1 == options_.accumulate, batches_, " batches of ", options_.accumulate);
  if (!options_.part_scalers) reducer_.begin();
  learn(batch);
  if (options_.part_scalers) {
    // Several backwards came to each parameter; what they sum up to sets out now.
    optimizer_.set_gradients(part_gradients_);
    part_gradients_.clear();
    reducer_.begin();
  }
  reducer_.finish();
  const at::Tensor losses = agree();
  StepLoss out{.total = losses[0].item<double>()};
  for (size_t i = 0; i < part_names_.size(); ++i)
    out.parts.emplace_back(part_names_[i], losses[static_cast<int64_t>(i) + 1].item<double>());
  LossScaler* scaler = options_.scaler;
  const GradientUse use{.loss_factor = scaler ? scaler->factor() : 1,
                        .max_norm = options_.clip_grad_norm,
                        .check = scaler || options_.part_scalers};
  if (use.check || std::isfinite(out.total)) {
    const UpdateResult result = optimizer_.step(factor, use);
    out.updated = result.made;
    out.grad_norm = result.norm;
  }
  if (scaler) {
    scaler->update(out.updated);
    if (!out.updated && scaler->steps_on_overflow()) {
      for (at::Tensor& gradient : optimizer_.gradients()) gradient.zero_();
      out.updated = optimizer_.step(factor).made;
    }
  }
  if (options_.part_scalers) update_part_scalers();
  optimizer_.zero_grad();
  return out;
}

void TrainStep::learn(const data::Batch& batch) {
  LossParts parts = loss_(executor_.forward({images_of(batch)}, Mode::kTrain), batch);
  OCTET_CHECK(!parts.empty());
  if (options_.regularizer) parts.emplace_back("regularization", (*options_.regularizer)());
  at::Tensor total = parts[0].second;
  for (size_t i = 1; i < parts.size(); ++i) total = total + parts[i].second;
  const double share = 1.0 / options_.accumulate;
  if (options_.part_scalers) {
    descend_apart(parts, share);
  } else {
    const double by = (options_.scaler ? options_.scaler->factor() : 1) * share;
    (by == 1 ? total : total * by).backward();
  }
  std::vector<at::Tensor> losses = {total.detach().to(at::kDouble).reshape({})};
  part_names_.clear();
  for (const auto& [name, part] : parts) {
    part_names_.push_back(name);
    losses.push_back(part.detach().to(at::kDouble).reshape({}));
  }
  losses_ = batches_ == 0 ? at::stack(losses) : losses_ + at::stack(losses);
  ++batches_;
  // The rank whose images reach farthest has the scale of all of them.
  options_.communicator.all_reduce(scales_, Reduce::kMax);
}

void TrainStep::descend_apart(const LossParts& parts, double share) {
  std::vector<at::Tensor> overflows;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [name, part] = parts[i];
    const double factor = options_.part_scalers->of(name).factor();
    if (part.requires_grad()) (part * (factor * share)).backward({}, /*retain_graph=*/i + 1 < parts.size());
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& gradient : optimizer_.gradients()) gradients.push_back(gradient.to(at::kFloat));
    optimizer_.zero_grad();
    overflows.push_back(at::zeros({1}, part.options().dtype(at::kFloat).requires_grad(false)));
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, overflows.back(),
                                                   at::full({1}, 1 / factor, overflows.back().options()));
    if (part_gradients_.empty()) {
      part_gradients_ = std::move(gradients);
    } else {
      at::_foreach_add_(part_gradients_, gradients);
    }
  }
  const at::Tensor overflow = at::cat(overflows);
  part_overflows_ = batches_ == 0 ? overflow : at::maximum(part_overflows_, overflow);
}

void TrainStep::update_part_scalers() {
  options_.communicator.all_reduce({&part_overflows_, 1}, Reduce::kMax);
  const at::Tensor overflows = part_overflows_.to(at::kCPU);
  for (size_t i = 0; i < part_names_.size(); ++i)
    options_.part_scalers->of(part_names_[i]).update(overflows[static_cast<int64_t>(i)].item<float>() == 0);
}

at::Tensor TrainStep::agree() {
  std::vector<at::Tensor> means = {losses_ / options_.accumulate};
  batches_ = 0;
  // Over the images of all ranks they are the same already.
  if (!executor_.options().statistics) means.insert(means.end(), statistics_.begin(), statistics_.end());
  options_.communicator.all_reduce(means, Reduce::kMean);
  return means[0].to(at::kCPU);
}

at::Tensor images_of(const data::Batch& batch) {
  return at::from_blob(const_cast<float*>(batch.images.data()), {batch.size, batch.channels, batch.height, batch.width},
                       at::kFloat);
}

}  // namespace octet::train
