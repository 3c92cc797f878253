// Detectors from elsewhere: networks that find objects, whose outputs the experiment says how to read. They are
// calibrated, pruned, compiled, measured and run as Octet's own; what they are trained with Octet does not know, so
// that they learn from a teacher alone (loss.cc).
#pragma once
#include "tasks/detector/options.h"
#include "tasks/task.h"

namespace octet::tasks::detector {

class Task : public tasks::Task {
 public:
  explicit Task(const Options& options) : options_(options) {}

  std::unique_ptr<tasks::Task> clone() const override { return std::make_unique<Task>(*this); }
  void describe(schema::Section& section) override { detector::describe(section, options_); }
  void describe_decoder(schema::Section& section) override { detector::describe_decoder(section, options_); }
  void name_classes(const std::vector<std::string>& names) override;
  // Those that suppress by themselves: torchvision's, by the types and shapes of their outputs, and those of
  // TensorFlow's Object Detection API, by the names (detection_boxes ...). Class c is then what the network calls c.
  bool recognize(const Signature& network) override;
  // UserError (exit 2): there is no network of this task but in files.
  ir::Graph build(const models::ModelOptions& options) const override;
  // Whose outputs are as the options say.
  void check(const Signature& network, int64_t classes) const override;
  int64_t classes(const Signature& network) const override;
  ir::Graph executed_graph(const ir::Graph& network) const override;
  std::vector<Prediction> decode(const Outputs& outputs, const data::Batch& batch) const override;  // Objects
  // Tensors: what nvinfer knows how to read is DetectNet_v2's grid alone. Says what a parser of the user's would need.
  NvinferReading nvinfer(const Signature& network) const override;
  std::unique_ptr<Evaluator> evaluator() const override;
  std::vector<MetricInfo> metrics() const override { return object_metrics(); }

 private:
  Options options_;
};

}  // namespace octet::tasks::detector
