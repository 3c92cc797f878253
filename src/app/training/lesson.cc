#include "app/training/lesson.h"

#include "app/network_file.h"
#include "app/training/training_setup.h"
#include "base/error.h"
#include "passes/pipelines.h"
#include "tasks/training.h"
#include "train/distillation.h"

namespace octet::app {
namespace {

ir::Graph teacher_graph(const spec::ExperimentSpec& spec, const std::string& file, const ir::Graph& network) {
  std::vector<ir::InputShape> shapes = ir::parse_input_shapes(spec.model.input_shape);
  if (shapes.size() == 1) shapes[0].name.clear();  // the teacher's input may have another name
  ir::Graph teacher = load_network(file, shapes);
  passes::run_pipeline(teacher, passes::training_passes());
  if (has_quantizers(teacher)) fail_usage(file, ": holds quantizers; a teacher is a float model");
  spec.task->check(tasks::signature_of(teacher), spec.task->classes(tasks::signature_of(network)));
  return spec.task->executed_graph(teacher);
}

}  // namespace

void require_lesson(const spec::ExperimentSpec& spec, const train::TrainOptions& schedule) {
  if (schedule.distill.teacher.empty() && tasks::make_loss(spec.task)->needs_teacher())
    fail_usage("the task ", spec.task.name(),
               " has no loss of its own: Octet knows how to read the network, not what it was trained with; name the "
               "float network that it is to learn from, such as the unpruned one: train.distill.teacher, or "
               "finetune.distill.teacher of the stages qat and control");
}

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
