// The tasks by name, and the choice of one in an experiment.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace octet::tasks {

struct TaskInfo {
  std::string name;
  std::string summary;
  std::unique_ptr<Task> (*make)();
};
const std::vector<TaskInfo>& all_tasks();

// Every task with its options, one of them chosen. A value: copies are deep.
class TaskChoice {
 public:
  TaskChoice();  // the first one, all with default options
  TaskChoice(const TaskChoice& other);
  TaskChoice& operator=(const TaskChoice& other);
  TaskChoice(TaskChoice&&) = default;
  TaskChoice& operator=(TaskChoice&&) = default;

  const std::string& name() const { return all_tasks()[chosen_].name; }
  const Task& operator*() const { return *tasks_[chosen_]; }
  const Task* operator->() const { return tasks_[chosen_].get(); }
  Task* operator->() { return tasks_[chosen_].get(); }
  // Of the chosen one; the others get default options.
  void forget_incidentals();

  // The key `task`, and a section for each task, of which that of the chosen one alone may be given.
  friend void describe(schema::Section& section, TaskChoice& choice);

 private:
  size_t chosen_ = 0;
  std::vector<std::unique_ptr<Task>> tasks_;  // as all_tasks()
  std::vector<bool> given_;                   // which have a section in what was read
};
void describe(schema::Section& section, TaskChoice& choice);

}  // namespace octet::tasks
