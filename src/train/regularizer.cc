#include "train/regularizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <string>

#include "ir/query.h"
#include "quant/fusion_model.h"
#include "train/executor.h"

namespace octet::train {
namespace {

// The weighted node that has this parameter as its weights, perhaps behind a quantizer, or as its bias; nullptr: none.
const ir::Node* weighted_reader(const ir::Value& parameter) {
  for (const ir::Node* user : parameter.users) {
    if (ir::is_quantizer(user) && user->input(0) == &parameter) {
      if (const ir::Node* reader = weighted_reader(*user->output())) return reader;
    } else if (user->info().has(ir::trait::kWeighted) &&
               (user->input(1) == &parameter || user->input(2) == &parameter)) {
      return user;
    }
  }
  return nullptr;
}

bool is_weights_of(const ir::Value& parameter, const ir::Node& reader) {
  return ir::behind_quantizers(reader.input(1)) == &parameter;
}

const ir::Node* quantizer_of(const ir::Value& parameter) {
  const auto found = std::find_if(parameter.users.begin(), parameter.users.end(),
                                  [](const ir::Node* user) { return ir::is_quantizer(user); });
  return found == parameter.users.end() ? nullptr : *found;
}

}  // namespace

Regularizer::Regularizer(const RegularizerOptions& options, const Executor& executor)
    : options_(options), none_(at::zeros({}, at::TensorOptions().device(at::Device(executor.options().device)))) {
  std::map<std::string, at::Tensor> scales;
  for (const auto& tensors : {executor.named_buffers(), executor.named_parameters()})
    for (const auto& [name, tensor] : tensors) scales.emplace(name, tensor);
  for (const auto& [name, tensor] : executor.named_parameters()) {
    const ir::Value& value = *executor.graph().find_value(name);
    const ir::Node* reader = weighted_reader(value);
    if (!reader) continue;
    Parameter parameter{tensor, -1, std::nullopt};
    if (is_weights_of(value, *reader)) {
      parameter.axis = quant::weight_axis(*reader).value_or(-1);
      const ir::Node* quantizer = quantizer_of(value);
      const auto scale = quantizer ? scales.find(quantizer->input(1)->name) : scales.end();
      if (scale != scales.end() && quantizer->get_string("state") != ir::kObserving)
        parameter.grid = {scale->second,
                          {.axis = quantizer->get_int("axis"),
                           .qmin = static_cast<int32_t>(quantizer->get_int("qmin")),
                           .qmax = static_cast<int32_t>(quantizer->get_int("qmax")),
                           .zero_point = {},
                           .offset = {}}};
    } else if (options.type == RegularizerType::kRange) {
      continue;  // a bias has no range of its own
    }
    if (options.type == RegularizerType::kDampening && !parameter.grid) continue;
    parameters_.push_back(std::move(parameter));
  }
}

at::Tensor Regularizer::penalty(const Parameter& parameter) const {
  const at::Tensor& p = parameter.value;
  const at::Tensor w = p.scalar_type() == at::kDouble ? p : p.to(at::kFloat);  // a low type would overflow
  switch (options_.type) {
    case RegularizerType::kRange:
      return (parameter.axis < 0 ? w.abs().max() : w.abs().movedim(parameter.axis, 0).flatten(1).amax(1)).sum();
    case RegularizerType::kDampening: {
      const Grid& grid = *parameter.grid;
      const at::Tensor scale = usable_scale(grid.scale.detach());
      const at::Tensor codes = fake_quantize(p.detach(), scale, grid.options, at::kFloat);
      std::vector<int64_t> along(static_cast<size_t>(w.dim()), 1);
      if (scale.numel() > 1) along[static_cast<size_t>(grid.options.axis)] = scale.numel();
      const at::Tensor step = scale.reshape(along).to(w.scalar_type());
      const at::Tensor low = step * static_cast<double>(grid.options.qmin),
                       high = step * static_cast<double>(grid.options.qmax);
      return (w.clamp(low, high) - codes.to(w.scalar_type())).square().sum();
    }
    case RegularizerType::kL1:
      return w.abs().sum();
    case RegularizerType::kL2:
    case RegularizerType::kNone:
      break;
  }
  return w.square().sum();
}

at::Tensor Regularizer::operator()() const {
  std::vector<at::Tensor> sums;
  for (const Parameter& parameter : parameters_) sums.push_back(penalty(parameter));
  return sums.empty() ? none_ : at::stack(sums).sum() * options_.weight;
}

}  // namespace octet::train
