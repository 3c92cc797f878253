#include "train/loss.h"
#include "tasks/task.h"

namespace octet::tasks::detector {
namespace {

// Octet knows how to read the network, not what it was trained with. It can still learn to say what another network
// says: pruned, or with quantizers, what the whole one in floating point says.
class Loss : public train::Loss {
 public:
  train::LossParts operator()(const std::vector<at::Tensor>&, const data::Batch&) override { return {}; }
  bool needs_teacher() const override { return true; }
};

}  // namespace

std::unique_ptr<train::Loss> make_loss(const tasks::Task&) {
  return std::make_unique<Loss>();
}

}  // namespace octet::tasks::detector
