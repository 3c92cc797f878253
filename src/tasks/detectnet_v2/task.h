// Detection with DetectNet_v2 (NVIDIA TAO): a grid of cells that propose boxes, clustered to detections, measured by
// VOC's average precision.
#pragma once
#include "tasks/detectnet_v2/head.h"
#include "tasks/detectnet_v2/options.h"
#include "tasks/detectnet_v2/tao_inference.h"
#include "tasks/detectnet_v2/tao_specification.h"
#include "tasks/task.h"

namespace octet::tasks::detectnet_v2 {

class Task : public tasks::Task {
 public:
  explicit Task(const Options& options) : options_(options) {}
  const Options& options() const { return options_; }

  std::unique_ptr<tasks::Task> clone() const override { return std::make_unique<Task>(*this); }
  void describe(schema::Section& section) override { detectnet_v2::describe(section, options_); }
  void describe_decoder(schema::Section& section) override { detectnet_v2::describe_decoder(section, options_); }
  void name_classes(const std::vector<std::string>& names) override;
  const tao::Message* tao_specification() const override { return &detectnet_v2::tao_specification(); }
  const tao::Message* tao_inference_specification() const override {
    return &detectnet_v2::tao_inference_specification();
  }
  // The head on a backbone of the zoo.
  ir::Graph build(const models::ModelOptions& options) const override;
  // Of the form that head.h makes.
  void check(const Signature& network, int64_t classes) const override;
  int64_t classes(const Signature& network) const override { return grid_of(network).classes; }
  ir::Graph executed_graph(const ir::Graph& network) const override;
  std::vector<Prediction> decode(const Outputs& outputs, const data::Batch& batch) const override;  // Objects
  NvinferReading nvinfer(const Signature& network) const override;
  std::unique_ptr<Evaluator> evaluator() const override;
  std::vector<MetricInfo> metrics() const override { return object_metrics(); }
  bool float_heads() const override { return true; }  // as TAO: two small convolutions that read numbers off

 private:
  Options options_;
};

}  // namespace octet::tasks::detectnet_v2
