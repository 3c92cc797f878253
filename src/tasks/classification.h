// Image classification: cross-entropy with label smoothing (Szegedy et al. 2016), top-1 and top-k accuracy.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/loader.h"
#include "metrics/top_k.h"
#include "train/trainer.h"

namespace octet::tasks {

// What one pass over labelled images showed.
struct ClassificationResult {
  metrics::TopKAccumulator accuracy;
  double loss = 0;               // mean cross-entropy, without smoothing
  std::vector<int> predictions;  // top-1 class of each image, in the loader's order
  std::vector<float> logits;     // [image][class]
  int64_t classes = 0;
};

// `executor` gives logits. Runs it in evaluation mode over one epoch of `loader` (which must neither shuffle nor drop). `progress` is
// told how many images are done. UserError when a label is not below the number of outputs.
ClassificationResult evaluate_classifier(train::Executor& executor, data::Loader& loader, int top_k,
                                         const std::function<void(int64_t)>& progress = {});

// UserError (exit 2) unless the graph has one image input and one output of `classes` scores (0: any number).
void require_classifier(const ir::Graph& graph, int64_t classes);

struct ClassificationOptions {
  double label_smoothing = 0;
  int top_k = 5;
};

class ClassificationTask : public train::Task {
 public:
  // `validation` may be null: then there is no evaluation. It is not owned.
  ClassificationTask(const ClassificationOptions& options, data::Loader* validation);
  // On images in [N, C, H, W], up to the logits.
  ir::Graph executed_graph(const ir::Graph& network) const override;
  at::Tensor loss(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override;
  std::map<std::string, double> evaluate(train::Executor& executor) override;
  std::string primary_metric() const override { return validation_ ? "val_top1" : ""; }

 private:
  ClassificationOptions options_;
  data::Loader* validation_;
};

}  // namespace octet::tasks
