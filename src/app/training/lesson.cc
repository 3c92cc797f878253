#include "app/training/lesson.h"

#include "app/network_file.h"
#include "app/training/training_setup.h"
#include "base/error.h"
#include "tasks/training.h"
#include "train/distillation.h"

namespace octet::app {
namespace {

ir::Graph teacher_graph(const spec::ExperimentSpec& spec, const std::string& file, const ir::Graph& network) {
  const ir::Graph teacher = load_network(file);
  if (has_quantizers(teacher)) fail_usage(file, ": holds quantizers; a teacher is a float model");
  spec.task->check(tasks::signature_of(teacher), spec.task->classes(tasks::signature_of(network)));
  return spec.task->executed_graph(teacher);
}

}  // namespace

Lesson lesson_of(const spec::ExperimentSpec& spec, const train::TrainOptions& schedule,
                 const train::ExecutorOptions& executor, const ir::Graph& network) {
  Lesson out{.executed = spec.task->executed_graph(network), .task_loss = tasks::make_loss(spec.task), .loss = nullptr};
  const train::DistillOptions& distill = schedule.distill;
  if (distill.teacher.empty()) {
    out.loss = std::move(out.task_loss);
    return out;
  }
  auto loss = std::make_unique<train::Distillation>(*out.task_loss, out.executed,
                                                    teacher_graph(spec, distill.teacher, network), distill, executor);
  out.executed = loss->student().clone();
  out.loss = std::move(loss);
  return out;
}

}  // namespace octet::app
