#include "train/batch_norm_statistics.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "train/ops_common.h"
#include "train/step.h"

namespace octet::train {
namespace {

struct Statistic {
  at::Tensor running;
  double momentum;  // weight of a batch
  at::Tensor sum;   // of momentum * those of a batch, float64
};

std::vector<Statistic> statistics_of(const Executor& executor) {
  std::map<std::string, double> momentum;
  for (const auto& node : executor.graph().nodes())
    if (node->kind == ir::OpKind::kBatchNormalization && !keeps_statistics(*node))
      for (const size_t input : {3, 4})
        momentum[node->input(input)->name] = 1.0 - static_cast<double>(node->get_float("momentum"));
  std::vector<Statistic> out;
  for (const auto& [name, tensor] : executor.named_buffers())
    if (const auto found = momentum.find(name); found != momentum.end() && found->second > 0)
      out.push_back({tensor, found->second, at::zeros_like(tensor, at::kDouble)});
  return out;
}

// Scales stay, dropout of later steps is that of its own, and statistics may move.
class Undisturbed {
 public:
  explicit Undisturbed(Executor& executor)
      : executor_(executor), step_(executor.step()), averaging_(executor.options().averaging) {
    executor_.set_batch_norm_frozen(false);
    executor_.set_averaging_constants(0, 0);
  }
  ~Undisturbed() {
    executor_.set_averaging_constants(static_cast<float>(averaging_.activations),
                                      static_cast<float>(averaging_.weights));
    executor_.set_step(step_);
  }

 private:
  Executor& executor_;
  int64_t step_;
  quant::ScaleAveraging averaging_;
};

}  // namespace

int64_t reestimate_batch_norm(Executor& executor, data::Loader& loader, int epoch, int64_t images,
                              Communicator& communicator) {
  std::vector<Statistic> statistics = statistics_of(executor);
  if (statistics.empty()) return 0;
  const at::NoGradGuard no_grad;
  const Undisturbed undisturbed(executor);
  int64_t batches = 0;
  loader.start_epoch(epoch);
  for (int64_t seen = 0; batches == 0 || seen < images;) {
    const std::optional<data::Batch> batch = loader.next();
    if (!batch) break;
    for (Statistic& s : statistics) s.running.zero_();  // what a batch leaves there is its share alone
    executor.forward({images_of(*batch)}, Mode::kTrain);
    for (Statistic& s : statistics) s.sum += s.running;
    seen += batch->size * communicator.size();
    ++batches;
  }
  OCTET_CHECK(batches > 0);
  std::vector<at::Tensor> sums;
  for (Statistic& s : statistics) sums.push_back((s.sum / (s.momentum * static_cast<double>(batches))).to(at::kFloat));
  communicator.all_reduce(sums, Reduce::kMean);
  for (size_t i = 0; i < sums.size(); ++i) statistics[i].running.copy_(sums[i]);
  return static_cast<int64_t>(statistics.size()) / 2;
}

}  // namespace octet::train
