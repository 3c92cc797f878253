#include "train/optimizer.h"

#include <ATen/ATen.h>

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

at::Tensor like(const at::Tensor& t) {
  return at::zeros_like(t.detach(), at::MemoryFormat::Preserve);
}

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, std::vector<NamedParameter> parameters) : options_(options) {
  const bool bias_free = contains(options_.no_decay, NoDecay::kBias);
  const bool norm_free = contains(options_.no_decay, NoDecay::kNorm);
  Group decayed{options_.weight_decay, {}, {}, {}, {}, {}}, plain{0.0, {}, {}, {}, {}, {}};
  for (NamedParameter& p : parameters) {
    const bool no_decay = (p.is_bias && bias_free) || (p.is_norm && norm_free);
    Group& g = no_decay || options_.weight_decay == 0 ? plain : decayed;
    g.names.push_back(p.name);
    g.parameters.push_back(p.tensor);
  }
  for (Group* g : {&decayed, &plain}) {
    if (g->parameters.empty()) continue;
    for (const at::Tensor& p : g->parameters) {
      if (options_.type != OptimizerType::kSgd || options_.momentum != 0) g->first.push_back(like(p));
      if (options_.type != OptimizerType::kSgd) {
        g->second.push_back(like(p));
        g->steps.push_back(at::zeros({}, p.options().dtype(at::kFloat).requires_grad(false)));
      }
    }
    groups_.push_back(std::move(*g));
  }
}

std::vector<at::Tensor> Optimizer::Group::gradients() {
  std::vector<at::Tensor> out;
  for (at::Tensor& p : parameters) {
    if (!p.grad().defined()) p.mutable_grad() = like(p);
    out.push_back(p.grad());
  }
  return out;
}

std::vector<at::Tensor> Optimizer::gradients() {
  std::vector<at::Tensor> out;
  for (Group& g : groups_)
    for (at::Tensor& gradient : g.gradients()) out.push_back(std::move(gradient));
  return out;
}

void Optimizer::step(double factor) {
  at::NoGradGuard no_grad;
  const double lr = options_.lr * factor;
  for (Group& g : groups_) {
    const std::vector<at::Tensor> gradients = g.gradients();
    if (options_.type == OptimizerType::kSgd) {
      at::_fused_sgd_(g.parameters, gradients, g.first, g.weight_decay, options_.momentum, lr, 0.0, options_.nesterov,
                      false, !started_);
      continue;
    }
    at::_foreach_add_(g.steps, 1);
    // Adam adds the decay to the gradient, AdamW applies it to the weight.
    const auto fused = [&](auto function) {
      function(g.parameters, gradients, g.first, g.second, at::TensorList(), g.steps, lr, options_.betas.at(0),
               options_.betas.at(1), g.weight_decay, options_.eps, false, false, std::nullopt, std::nullopt);
    };
    if (options_.type == OptimizerType::kAdam)
      fused([](auto&&... arguments) { at::_fused_adam_(arguments...); });
    else
      fused([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
  }
  started_ = true;
}

void Optimizer::zero_grad() {
  for (Group& g : groups_)
    for (at::Tensor& p : g.parameters) p.mutable_grad() = at::Tensor();
}

double Optimizer::clip_grad_norm(double max_norm) {
  at::NoGradGuard no_grad;
  const std::vector<at::Tensor> all = gradients();
  if (all.empty()) return 0;
  const double norm = at::stack(at::_foreach_norm(all)).norm().item<double>();
  if (norm > max_norm) at::_foreach_mul_(all, max_norm / (norm + 1e-6));
  return norm;
}

void Optimizer::save(checkpoint::NamedTensors& state) const {
  state["optimizer/started"] = ir::Tensor::scalar<int64_t>(started_);
  for (const Group& g : groups_)
    for (size_t i = 0; i < g.names.size(); ++i) {
      const std::string prefix = "optimizer/" + g.names[i];
      if (!g.first.empty()) state[prefix + "/first"] = to_constant(g.first[i]);
      if (!g.second.empty()) state[prefix + "/second"] = to_constant(g.second[i]);
      if (!g.steps.empty()) state[prefix + "/step"] = to_constant(g.steps[i]);
    }
}

void Optimizer::load(const checkpoint::NamedTensors& state) {
  started_ = saved_entry(state, "optimizer/started").to_ints().at(0) != 0;
  for (Group& g : groups_)
    for (size_t i = 0; i < g.names.size(); ++i) {
      const std::string prefix = "optimizer/" + g.names[i];
      if (!g.first.empty()) restore(g.first[i], state, prefix + "/first");
      if (!g.second.empty()) restore(g.second[i], state, prefix + "/second");
      if (!g.steps.empty()) restore(g.steps[i], state, prefix + "/step");
    }
}

WeightAverage::WeightAverage(double decay, std::vector<NamedParameter> parameters)
    : decay_(decay), parameters_(std::move(parameters)) {
  at::NoGradGuard no_grad;
  for (const NamedParameter& p : parameters_) shadow_.push_back(p.tensor.detach().clone());
}

void WeightAverage::update() {
  at::NoGradGuard no_grad;
  const double n = static_cast<double>(updates_++);
  const double decay = std::min(decay_, (1 + n) / (10 + n));
  std::vector<at::Tensor> live;
  for (const NamedParameter& p : parameters_) live.push_back(p.tensor.detach());
  at::_foreach_lerp_(shadow_, live, 1 - decay);
}

void WeightAverage::swap() {
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < shadow_.size(); ++i) {
    at::Tensor live = parameters_[i].tensor.detach();
    const at::Tensor copy = live.clone();
    live.copy_(shadow_[i]);
    shadow_[i].copy_(copy);
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
