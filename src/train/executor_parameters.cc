#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/error.h"
#include "ir/axes.h"
#include "train/constants.h"
#include "train/executor_state.h"
#include "train/fake_quant.h"

namespace octet::train {
namespace {

FakeQuantOptions codes_of(const ir::Node& quantizer) {
  return {.qmin = static_cast<int32_t>(quantizer.get_int("qmin")),
          .qmax = static_cast<int32_t>(quantizer.get_int("qmax"))};
}

}  // namespace

const ir::Node* Executor::State::quantizer_with_offset(const std::string& name) const {
  const ir::Value* value = graph.find_value(name);
  for (const ir::Node* user : value->users)
    if (user->kind == ir::OpKind::kFakeQuantize && user->input(2) == value &&
        user->get_string("state") == ir::kLearnedOffset)
      return user;
  return nullptr;
}

const at::Tensor& Executor::State::parameter(const std::string& name) const {
  return std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.first == name; })->second;
}

// With an averaging constant of 1 the scale of weights is a function of the weights: after an optimizer step it is
// brought up to date before anyone else looks at it.
void Executor::State::refresh_weight_scales() {
  if (!scales_stale || options.averaging.weights != 1) return;
  scales_stale = false;
  Run run = new_run(false);
  for (const auto& node : graph.nodes()) {
    if (node->kind != ir::OpKind::kFakeQuantize || !node->input(0)->is_constant()) continue;
    if (node->get_string("state") != ir::kFrozen) continue;
    const at::Tensor x = run.plain(slots.of(node->input(0)));
    FakeQuantOptions o;
    if (node->input(1)->constant->size() > 1)
      o.axis = static_cast<int64_t>(ir::normal_axis(*node, node->get_int("axis"), static_cast<size_t>(x.dim())));
    o.qmin = static_cast<int32_t>(node->get_int("qmin"));
    o.qmax = static_cast<int32_t>(node->get_int("qmax"));
    o.zero_point = run.plain(slots.of(node->input(2)));
    update_scale(run.plain(slots.of(node->input(1))), x, o, 1);
  }
}

std::vector<std::pair<std::string, at::Tensor>> Executor::named_parameters() const {
  return state_->parameters;
}

std::vector<std::pair<std::string, at::Tensor>> Executor::named_buffers() const {
  state_->refresh_weight_scales();
  return state_->buffers;
}

void Executor::parameters_changed() {
  state_->scales_stale = true;
}

const ir::Value& Executor::State::matching(const ir::Graph& other, const std::string& name,
                                           const at::Tensor& tensor) const {
  const ir::Value* value = other.find_value(name);
  require(value && value->is_constant(), "graph '", other.name, "' has no constant '", name, "'");
  require(value->constant->shape() == tensor.sizes().vec(), "constant '", name, "' of graph '", other.name,
          "' has shape ", ir::shape_string(value->constant->shape()), ", expected ",
          ir::shape_string(tensor.sizes().vec()));
  return *value;
}

bool Executor::State::is_scale(const std::string& name) const {
  const ir::Value* value = graph.find_value(name);
  return std::any_of(value->users.begin(), value->users.end(), [&](const ir::Node* user) {
    return user->kind == ir::OpKind::kFakeQuantize && user->input(1) == value;
  });
}

void Executor::write_back(ir::Graph& graph) {
  State& s = *state_;
  s.refresh_weight_scales();
  for (const auto* list : {&s.parameters, &s.buffers})
    for (const auto& [name, tensor] : *list) {
      const ir::DataType type = s.matching(graph, name, tensor).constant->data_type();
      at::Tensor written = tensor.detach();
      if (s.is_scale(name)) written = usable_scale(written);
      if (const ir::Node* quantizer = s.quantizer_with_offset(name))
        written =
            zero_point_of(written, usable_scale(s.parameter(quantizer->input(1)->name).detach()), codes_of(*quantizer));
      graph.find_value(name)->constant = to_constant(written, type);
    }
}

void Executor::load_from(const ir::Graph& graph) {
  State& s = *state_;
  const at::NoGradGuard guard;
  for (const auto* list : {&s.parameters, &s.buffers})
    for (const auto& [name, tensor] : *list) {
      const ir::Value& value = s.matching(graph, name, tensor);
      at::Tensor given = to_torch(*value.constant);
      if (const ir::Node* quantizer = s.quantizer_with_offset(name))
        given = offset_of(given, to_torch(*graph.find_value(quantizer->input(1)->name)->constant));
      at::Tensor(tensor).copy_(given);
      s.graph.find_value(name)->constant = value.constant;
    }
  s.scales_stale = false;
}

}  // namespace octet::train
