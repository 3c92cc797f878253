#include "train/distillation.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "train/step.h"

namespace octet::train {
namespace {

// The output of the graph that is the value of this name, which becomes one.
size_t output_of(ir::Graph& graph, const std::string& name, const char* whose) {
  ir::Value* value = graph.find_value(name);
  if (!value || value->is_constant()) {
    std::vector<std::string> names;
    for (const auto& node : graph.nodes())
      for (const ir::Value* output : node->outputs)
        if (output) names.push_back(output->name);
    fail_usage("distill.bindings: the ", whose, " computes no tensor '", name, "'", did_you_mean(name, names));
  }
  const auto& outputs = graph.outputs();
  const auto found = std::find(outputs.begin(), outputs.end(), value);
  const size_t at = static_cast<size_t>(found - outputs.begin());
  if (found == outputs.end()) graph.add_output(value);
  return at;
}

bool may_be_equal(const std::optional<ir::Shape>& a, const std::optional<ir::Shape>& b) {
  if (!a || !b) return true;
  return std::equal(a->begin(), a->end(), b->begin(), b->end(),
                    [](int64_t x, int64_t y) { return x == y || x == ir::kDynamic || y == ir::kDynamic; });
}

std::vector<DistillBinding> of_all_outputs(const ir::Graph& student, const ir::Graph& teacher,
                                           DistillCriterion criterion) {
  if (student.outputs().size() != teacher.outputs().size())
    fail_usage("distill.teacher: it has ", teacher.outputs().size(), " outputs, the network that learns has ",
               student.outputs().size());
  std::vector<DistillBinding> out;
  for (size_t i = 0; i < student.outputs().size(); ++i)
    out.push_back(
        {.student = student.outputs()[i]->name, .teacher = teacher.outputs()[i]->name, .criterion = criterion});
  return out;
}

// Of the softmax over `axis`, the mean over the others.
at::Tensor divergence(const at::Tensor& student, const at::Tensor& teacher, int64_t axis, double temperature) {
  const at::Tensor wanted = (teacher / temperature).log_softmax(axis), said = (student / temperature).log_softmax(axis);
  return (wanted.exp() * (wanted - said)).sum(axis).mean() * (temperature * temperature);
}

at::Tensor difference(const at::Tensor& student, const at::Tensor& teacher, DistillCriterion criterion,
                      double temperature) {
  switch (criterion) {
    case DistillCriterion::kL1:
      return (student - teacher).abs().mean();
    case DistillCriterion::kL2:
      return (student - teacher).square().mean();
    case DistillCriterion::kChannel:
      return divergence(student.flatten(2), teacher.flatten(2), 2, temperature);
    case DistillCriterion::kAuto:
    case DistillCriterion::kKl:
      break;
  }
  return divergence(student, teacher, 1, temperature);
}

}  // namespace

Distillation::Distillation(Loss& inner, const ir::Graph& student, const ir::Graph& teacher,
                           const DistillOptions& options, const ExecutorOptions& executor)
    : inner_(inner), options_(options), student_(student.clone()), outputs_(student.outputs().size()) {
  ir::Graph taught = teacher.clone();
  if (options_.bindings.empty()) options_.bindings = of_all_outputs(student, teacher, options_.criterion);
  for (DistillBinding binding : options_.bindings) {
    if (binding.teacher.empty()) binding.teacher = binding.student;
    const size_t own = output_of(student_, binding.student, "network that learns");
    const size_t its = output_of(taught, binding.teacher, "teacher");
    const ir::TensorType &a = student_.outputs()[own]->type, &b = taught.outputs()[its]->type;
    if (!may_be_equal(a.shape, b.shape))
      fail_usage("distill: '", binding.student, "' of the network that learns is ", ir::type_string(a), ", '",
                 binding.teacher, "' of the teacher is ", ir::type_string(b));
    if (binding.criterion == DistillCriterion::kAuto)
      binding.criterion = a.shape && a.shape->size() == 2 ? DistillCriterion::kKl : DistillCriterion::kL2;
    if (binding.criterion == DistillCriterion::kKl && a.shape && a.shape->size() < 2)
      fail_usage("distill: '", binding.student, "' is ", ir::type_string(a),
                 "; kl takes tensors with classes in axis 1");
    if (binding.criterion == DistillCriterion::kChannel && a.shape && a.shape->size() < 3)
      fail_usage("distill: '", binding.student, "' is ", ir::type_string(a),
                 "; channel takes maps, with places behind axis 1");
    pairs_.push_back({std::move(binding), own, its});
  }
  teacher_.emplace(taught, executor);
}

LossParts Distillation::operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) {
  LossParts parts = inner_({outputs.begin(), outputs.begin() + static_cast<ptrdiff_t>(outputs_)}, batch);
  const std::vector<at::Tensor> taught = teacher_->forward({images_of(batch)}, Mode::kEval);
  for (const Pair& pair : pairs_) {
    const at::Tensor &own = outputs.at(pair.student), &its = taught.at(pair.teacher);
    if (own.sizes() != its.sizes())
      fail("distill: '", pair.binding.student, "' has ", own.numel(), " elements in a batch, '", pair.binding.teacher,
           "' of the teacher ", its.numel());
    parts.emplace_back(
        "distill/" + pair.binding.student,
        difference(own, its, pair.binding.criterion, options_.temperature) * (options_.weight * pair.binding.weight));
  }
  return parts;
}

}  // namespace octet::train
