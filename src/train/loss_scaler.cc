#include "train/loss_scaler.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"

namespace octet::train {

DynamicLossScaler::DynamicLossScaler(const DynamicLossScaling& options)
    : options_(options),
      factor_(at::full({1}, options.initial, at::kFloat)),
      growth_tracker_(at::zeros({1}, at::kInt)) {
  OCTET_CHECK(options.initial > 0 && options.growth > 1 && options.backoff > 0 && options.backoff < 1 &&
              options.growth_interval > 0);
}

at::Tensor DynamicLossScaler::scale(const at::Tensor& loss) {
  factor_ = factor_.to(loss.device());
  growth_tracker_ = growth_tracker_.to(loss.device());
  return loss * factor_.reshape({}).to(loss.scalar_type());
}

bool DynamicLossScaler::unscale(std::span<at::Tensor> gradients) {
  at::NoGradGuard no_grad;
  at::Tensor overflow = at::zeros_like(factor_);
  const at::Tensor inverse = factor_.to(at::kDouble).reciprocal().to(at::kFloat);
  at::_amp_foreach_non_finite_check_and_unscale_(at::TensorList(gradients.data(), gradients.size()), overflow, inverse);
  at::_amp_update_scale_(factor_, growth_tracker_, overflow, options_.growth, options_.backoff,
                         options_.growth_interval);
  return overflow.item<float>() == 0;
}

double DynamicLossScaler::factor() const {
  return factor_.item<double>();
}

}  // namespace octet::train
