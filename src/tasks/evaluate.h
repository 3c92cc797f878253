// The only loop that measures a model, whatever runs it.
#pragma once
#include <functional>

#include "tasks/task.h"

namespace octet::tasks {

// A network that can be run: by LibTorch, the engine or another run time.
class Runner {
 public:
  virtual ~Runner() = default;
  // Outputs for the images of a batch; valid until the next call.
  virtual Outputs run(const data::Batch& batch) = 0;
};

// Over one epoch of `loader`, which must neither shuffle nor drop. `progress` is told how many images are done.
// UserError where there is no image.
Metrics evaluate(Runner& runner, data::Loader& loader, const Task& task,
                 const std::function<void(int64_t)>& progress = {});

}  // namespace octet::tasks
