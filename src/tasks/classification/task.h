// Image classification: one class an image, measured by top-1 and top-k accuracy and cross-entropy.
#pragma once
#include "tasks/task.h"

namespace octet::tasks::classification {

struct Options {
  int64_t classes = 0;  // that the network must have; 0: any number
  int top_k = 5;
};

class Task : public tasks::Task {
 public:
  explicit Task(const Options& options) : options_(options) {}
  // One image input, one output [batch, classes].
  void check(const ir::Graph& network) const override;
  // Up to the logits.
  ir::Graph executed_graph(const ir::Graph& network) const override;
  // top1, topK (percent) and loss, the mean cross-entropy without smoothing.
  std::unique_ptr<Evaluator> evaluator() const override;
  MetricInfo metric() const override { return {.name = "top1", .title = "top-1 %"}; }

 private:
  Options options_;
};

// UserError, naming the image, where a label does not lie below `classes`.
void require_labels(const data::Batch& batch, int64_t classes);

}  // namespace octet::tasks::classification
