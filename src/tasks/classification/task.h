// Image classification: one class an image, measured by top-1 and top-k accuracy and cross-entropy.
#pragma once
#include "tasks/task.h"

namespace octet::tasks::classification {

struct Options {
  double label_smoothing = 0;  // [0, 1): share of the target that is spread over all classes (Szegedy et al. 2016)
  int64_t top_k = 5;           // accuracy of the k best classes is measured beside top-1
};

class Task : public tasks::Task {
 public:
  explicit Task(const Options& options) : options_(options) {}
  const Options& options() const { return options_; }

  std::unique_ptr<tasks::Task> clone() const override { return std::make_unique<Task>(*this); }
  void describe(schema::Section& section) override;
  void forget_incidentals() override { options_.top_k = Options().top_k; }
  void name_classes(const std::vector<std::string>& names) override { names_ = names; }
  // A network of the zoo with its own classifier.
  ir::Graph build(const models::ModelOptions& options) const override { return models::build_model(options); }
  // One image input, one output [batch, classes].
  void check(const Signature& network, int64_t classes) const override;
  int64_t classes(const Signature& network) const override { return network.outputs[0].type.shape->at(1); }
  // Up to the logits.
  ir::Graph executed_graph(const ir::Graph& network) const override;
  std::vector<Prediction> decode(const Outputs& outputs, const data::Batch& batch) const override;  // ClassScores
  NvinferReading nvinfer(const Signature& network) const override;
  std::unique_ptr<Evaluator> evaluator() const override;
  // top1, topK (percent) and loss, the mean cross-entropy without smoothing.
  std::vector<MetricInfo> metrics() const override;

 private:
  Options options_;
  std::vector<std::string> names_;  // of the classes, for people
};

// UserError, naming the image, where a label does not lie below `classes`.
void require_labels(const data::Batch& batch, int64_t classes);

}  // namespace octet::tasks::classification
