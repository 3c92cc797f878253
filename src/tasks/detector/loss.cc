#include "train/loss.h"
#include "base/error.h"
#include "tasks/task.h"

namespace octet::tasks::detector {

std::unique_ptr<train::Loss> make_loss(const tasks::Task&) {
  fail_usage(
      "the task detector has no loss: Octet knows how to read the network, not what it was trained with; calibrate, "
      "prune, compile and evaluate take it as it is");
}

}  // namespace octet::tasks::detector
