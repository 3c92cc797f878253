#include "tasks/registry.h"

#include "base/error.h"

namespace octet::tasks {

#define OCTET_TASK(name, summary)           \
  namespace name {                          \
  std::unique_ptr<tasks::Task> make_task(); \
  }
#include "tasks/tasks.def"
#undef OCTET_TASK

const std::vector<TaskInfo>& all_tasks() {
  static const std::vector<TaskInfo> tasks = {
#define OCTET_TASK(name, summary) {#name, summary, name::make_task},
#include "tasks/tasks.def"
#undef OCTET_TASK
  };
  return tasks;
}

TaskChoice::TaskChoice() : given_(all_tasks().size()) {
  for (const TaskInfo& info : all_tasks()) tasks_.push_back(info.make());
}

TaskChoice::TaskChoice(const TaskChoice& other) : chosen_(other.chosen_), given_(other.given_) {
  for (const auto& task : other.tasks_) tasks_.push_back(task->clone());
}

TaskChoice& TaskChoice::operator=(const TaskChoice& other) {
  return *this = TaskChoice(other);
}

void TaskChoice::forget_incidentals() {
  for (size_t i = 0; i < tasks_.size(); ++i)
    if (i != chosen_) tasks_[i] = all_tasks()[i].make();
  tasks_[chosen_]->forget_incidentals();
}

void describe(schema::Section& section, TaskChoice& choice) {
  const std::vector<TaskInfo>& tasks = all_tasks();
  std::vector<std::pair<size_t, std::string>> names;
  for (size_t i = 0; i < tasks.size(); ++i) names.emplace_back(i, tasks[i].name);
  section.choice("task", choice.chosen_, names).help("What the network is for; each task has a section of its own.");
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto keys_of = [](std::shared_ptr<void> owner, Task& task) {
      schema::Section keys(std::move(owner));
      task.describe(keys);
      return keys;
    };
    schema::OptionalSectionSlot slot;
    slot.present = [&choice, i] { return choice.chosen_ == i; };
    slot.create = [&choice, i] { choice.given_[i] = true; };
    slot.bind = [&choice, keys_of, i] { return keys_of(nullptr, *choice.tasks_[i]); };
    slot.prototype = [keys_of, i] {
      const std::shared_ptr<Task> task = all_tasks()[i].make();
      return keys_of(task, *task);
    };
    section.section(tasks[i].name, std::move(slot)).help("For this task: " + tasks[i].summary + ".");
    section.rule(tasks[i].name, [&choice, i]() -> std::string {
      if (!choice.given_[i] || choice.chosen_ == i) return "";
      return str("is a section of another task; this experiment is for ", choice.name(),
                 "; take it out or say task: ", all_tasks()[i].name);
    });
  }
}

}  // namespace octet::tasks
