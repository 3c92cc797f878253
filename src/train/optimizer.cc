#include "train/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "train/constants.h"
#include "train/saved_tensors.h"

namespace octet::train {
namespace {

bool contains(const std::vector<NoDecay>& list, NoDecay group) {
  return std::find(list.begin(), list.end(), group) != list.end();
}

// Zeros in the layout of `t`: float32, or float64 where `t` is.
at::Tensor moments_like(const at::Tensor& t) {
  const at::ScalarType type = t.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return at::zeros_like(t.detach(), t.options().dtype(type).requires_grad(false), at::MemoryFormat::Preserve);
}

}  // namespace

ParameterRule rule_of(const OptimizerOptions& options, const NamedParameter& parameter) {
  const ParameterGroup group = group_of(options, parameter.name);
  const bool no_decay = parameter.is_scale || (parameter.is_bias && contains(options.no_decay, NoDecay::kBias)) ||
                        (parameter.is_norm && contains(options.no_decay, NoDecay::kNorm));
  return {group.lr_mult, no_decay ? 0 : options.weight_decay * group.decay_mult};
}

Optimizer::Optimizer(const OptimizerOptions& options, std::vector<NamedParameter> parameters) : options_(options) {
  const bool sgd = options_.type == OptimizerType::kSgd;
  for (NamedParameter& p : parameters) {
    OCTET_CHECK(p.tensor.is_non_overlapping_and_dense(), p.name);
    OCTET_CHECK(!p.master.defined() || p.master.strides() == p.tensor.strides(), p.name);
    const ParameterRule rule = rule_of(options_, p);
    const at::Tensor first = !sgd || options_.momentum != 0 ? moments_like(p.tensor) : at::Tensor(),
                     second = sgd ? at::Tensor() : moments_like(p.tensor);
    parameters_.push_back({.of = std::move(p), .rule = rule, .first = first, .second = second});
  }
}

std::vector<at::Tensor> Optimizer::gradients() {
  std::vector<at::Tensor> out;
  for (Parameter& p : parameters_) {
    at::Tensor& gradient = p.of.tensor.mutable_grad();
    if (!gradient.defined() || gradient.strides() != p.of.tensor.strides()) {
      at::Tensor same = at::zeros_like(p.of.tensor.detach(), at::MemoryFormat::Preserve);
      if (gradient.defined()) same.copy_(gradient);
      gradient = same;
    }
    out.push_back(gradient);
  }
  return out;
}

void Optimizer::set_gradients(std::span<const at::Tensor> gradients) {
  OCTET_CHECK(gradients.size() == parameters_.size());
  for (size_t i = 0; i < gradients.size(); ++i) parameters_[i].of.tensor.mutable_grad() = gradients[i];
}

kernels::UpdateRule Optimizer::rule() const {
  kernels::UpdateRule r;
  if (options_.type == OptimizerType::kSgd) {
    r.kind = kernels::UpdateKind::kSgd;
    r.momentum = static_cast<float>(options_.momentum);
    r.nesterov = options_.nesterov;
    r.decay_last = options_.wd_after_momentum;
    return r;
  }
  const double beta1 = options_.betas.at(0), beta2 = options_.betas.at(1);
  r.kind = options_.type == OptimizerType::kLamb ? kernels::UpdateKind::kLamb : kernels::UpdateKind::kAdam;
  r.decoupled = options_.type != OptimizerType::kAdam;
  r.always_adapt = options_.use_nvlamb;
  r.beta2 = static_cast<float>(beta2);
  r.gain1 = static_cast<float>(1 - beta1);
  r.gain2 = static_cast<float>(1 - beta2);
  r.eps = static_cast<float>(options_.eps);
  r.step = options_.bias_correction ? steps_ : 0;
  if (options_.bias_correction) {
    const auto t = static_cast<double>(steps_);
    r.correction1 = static_cast<float>(1 / (1 - std::pow(beta1, t)));
    r.correction2 = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)));
  }
  return r;
}

UpdateResult Optimizer::step(double factor, const GradientUse& use) {
  at::NoGradGuard no_grad;
  const std::vector<at::Tensor> all = gradients();
  std::vector<UpdateTensor> tensors;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    tensors.push_back({.gradient = all[i], .weight = p.of.value(), .first = p.first, .second = p.second});
    if (p.of.master.defined()) tensors.back().copy = p.of.tensor.detach();
  }
  UpdateResult result;
  double gradient_factor = 1 / use.loss_factor;
  if (use.check || use.max_norm > 0) {
    result.norm = std::sqrt(square_sum(tensors, gradient_factor));
    result.made = std::isfinite(result.norm);
    if (!result.made) return result;
    // As torch.nn.utils.clip_grad_norm_.
    if (use.max_norm > 0) gradient_factor *= std::min(1.0, use.max_norm / (result.norm + 1e-6));
  }
  ++steps_;
  kernels::UpdateRule shared = rule();
  shared.gradient_factor = static_cast<float>(gradient_factor);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    tensors[i].rule = shared;
    tensors[i].rule.rate = static_cast<float>(options_.lr * factor * parameters_[i].rule.lr_mult);
    tensors[i].rule.decay = static_cast<float>(parameters_[i].rule.weight_decay);
  }
  update(tensors);
  return result;
}

void Optimizer::zero_grad() {
  for (Parameter& p : parameters_) p.of.tensor.mutable_grad() = at::Tensor();
}

void Optimizer::save(checkpoint::NamedTensors& state) const {
  state["optimizer/steps"] = ir::Tensor::scalar<int64_t>(steps_);
  for (const Parameter& p : parameters_) {
    const std::string prefix = "optimizer/" + p.of.name;
    if (p.of.master.defined()) state[prefix + "/master"] = to_constant(p.of.master);
    if (p.first.defined()) state[prefix + "/first"] = to_constant(p.first);
    if (p.second.defined()) state[prefix + "/second"] = to_constant(p.second);
  }
}

void Optimizer::load(const checkpoint::NamedTensors& state) {
  steps_ = saved_entry(state, "optimizer/steps").to_ints().at(0);
  for (Parameter& p : parameters_) {
    const std::string prefix = "optimizer/" + p.of.name;
    if (p.of.master.defined()) restore(p.of.master, state, prefix + "/master");
    if (p.first.defined()) restore(p.first, state, prefix + "/first");
    if (p.second.defined()) restore(p.second, state, prefix + "/second");
  }
}

WeightAverage::WeightAverage(double decay, std::vector<NamedParameter> parameters)
    : decay_(decay), parameters_(std::move(parameters)) {
  at::NoGradGuard no_grad;
  for (const NamedParameter& p : parameters_) shadow_.push_back(p.value().clone());
}

void WeightAverage::update() {
  at::NoGradGuard no_grad;
  const double n = static_cast<double>(updates_++);
  const double decay = std::min(decay_, (1 + n) / (10 + n));
  std::vector<at::Tensor> live;
  for (const NamedParameter& p : parameters_) live.push_back(p.value());
  at::_foreach_lerp_(shadow_, live, 1 - decay);
}

void WeightAverage::swap() {
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < shadow_.size(); ++i) {
    at::Tensor live = parameters_[i].value();
    const at::Tensor copy = live.clone();
    live.copy_(shadow_[i]);
    shadow_[i].copy_(copy);
    if (parameters_[i].master.defined()) parameters_[i].tensor.detach().copy_(live);
  }
}

void WeightAverage::save(checkpoint::NamedTensors& state) const {
  state["ema/updates"] = ir::Tensor::scalar<int64_t>(updates_);
  for (size_t i = 0; i < shadow_.size(); ++i) state["ema/" + parameters_[i].name] = to_constant(shadow_[i]);
}

void WeightAverage::load(const checkpoint::NamedTensors& state) {
  updates_ = saved_entry(state, "ema/updates").to_ints().at(0);
  for (size_t i = 0; i < shadow_.size(); ++i) restore(shadow_[i], state, "ema/" + parameters_[i].name);
}

}  // namespace octet::train
