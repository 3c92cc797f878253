#include "train/loss_scaler.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "train/saved_tensors.h"

namespace octet::train {
namespace {

// 2^x and 2^-x are normal numbers of float32. Gradients that overflow at the lower end do so without any factor, too.
constexpr double kLeast = -100, kGreatest = 126;

constexpr const char* kExponent = "loss_scaler/exponent";

}  // namespace

DynamicLossScaler::DynamicLossScaler(const CostScalingOptions& options)
    : options_(options), exponent_(options.initial_exponent) {
  OCTET_CHECK(exponent_ >= kLeast && exponent_ <= kGreatest && options.increment >= 0 && options.decrement > 0);
}

at::Tensor DynamicLossScaler::scale(const at::Tensor& loss) {
  return loss * factor();
}

bool DynamicLossScaler::unscale(std::span<at::Tensor> gradients) {
  if (gradients.empty()) return true;
  at::NoGradGuard no_grad;
  at::Tensor overflow = at::zeros({1}, gradients[0].options());
  const at::Tensor inverse = at::full({1}, 1 / factor(), gradients[0].options());
  at::_amp_foreach_non_finite_check_and_unscale_(at::TensorList(gradients.data(), gradients.size()), overflow, inverse);
  if (overflow.item<float>() == 0) {
    exponent_ = std::min(exponent_ + options_.increment, kGreatest);
    return true;
  }
  if (exponent_ <= kLeast)
    fail("gradients are not finite although the loss is scaled by 2^", kLeast,
         "; lower the learning rate, or train without cost_scaling to see where");
  exponent_ = std::max(exponent_ - options_.decrement, kLeast);
  if (options_.tao_compatible)
    for (at::Tensor& gradient : gradients) gradient.zero_();
  return options_.tao_compatible;
}

double DynamicLossScaler::factor() const {
  return std::exp2(std::floor(exponent_));
}

void DynamicLossScaler::save(checkpoint::NamedTensors& state) const {
  state[kExponent] = ir::Tensor::scalar<double>(exponent_);
}

void DynamicLossScaler::load(const checkpoint::NamedTensors& state) {
  const ir::Tensor& saved = saved_entry(state, kExponent);
  if (saved.data_type() != ir::DataType::kFloat64 || !saved.shape().empty())
    fail("the checkpoint's '", kExponent, "' is no number of float64");
  const double exponent = saved.values<double>()[0];
  if (!(exponent >= kLeast && exponent <= kGreatest)) fail("the checkpoint's '", kExponent, "' is ", exponent);
  exponent_ = exponent;
}

}  // namespace octet::train
