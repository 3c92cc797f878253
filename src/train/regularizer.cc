#include "train/regularizer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "train/executor.h"

namespace octet::train {
namespace {

// Of a weighted node: its weights, perhaps behind a quantizer, or its bias.
bool is_regularized(const ir::Value& parameter) {
  return std::any_of(parameter.users.begin(), parameter.users.end(), [&](const ir::Node* user) {
    if (user->kind == ir::OpKind::kFakeQuantize) return user->input(0) == &parameter && is_regularized(*user->output());
    return user->info().has(ir::trait::kWeighted) && (user->input(1) == &parameter || user->input(2) == &parameter);
  });
}

}  // namespace

Regularizer::Regularizer(const RegularizerOptions& options, const Executor& executor)
    : options_(options), none_(at::zeros({}, at::TensorOptions().device(at::Device(executor.options().device)))) {
  for (const auto& [name, tensor] : executor.named_parameters())
    if (is_regularized(*executor.graph().find_value(name))) parameters_.push_back(tensor);
}

at::Tensor Regularizer::operator()() const {
  std::vector<at::Tensor> sums;
  for (const at::Tensor& p : parameters_) {
    const at::Tensor w = p.scalar_type() == at::kDouble ? p : p.to(at::kFloat);  // a low type would overflow
    sums.push_back(options_.type == RegularizerType::kL1 ? w.abs().sum() : w.square().sum());
  }
  return sums.empty() ? none_ : at::stack(sums).sum() * options_.weight;
}

}  // namespace octet::train
