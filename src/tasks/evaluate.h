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

// Runs one epoch of `loader`, which must neither shuffle nor drop, and gives what comes out to `take`. `progress` is
// told how many images are done. Returns their number. UserError where there is no image.
int64_t run_all(Runner& runner, data::Loader& loader,
                const std::function<void(const Outputs& outputs, const data::Batch& batch)>& take,
                const std::function<void(int64_t)>& progress = {});

// Over one epoch of `loader`, which must neither shuffle nor drop. `progress` is told how many images are done.
// UserError where there is no image.
Metrics evaluate(Runner& runner, data::Loader& loader, const Task& task,
                 const std::function<void(int64_t)>& progress = {});

}  // namespace octet::tasks
