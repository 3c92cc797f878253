// Detection with DetectNet_v2 (NVIDIA TAO): a grid of cells that propose boxes, clustered to detections, measured by
// VOC's average precision.
#pragma once
#include "metrics/average_precision.h"
#include "tasks/detectnet_v2/decode.h"
#include "tasks/task.h"

namespace octet::tasks::detectnet_v2 {

struct Options {
  int64_t classes = 0;  // that the network must have; 0: any number
  ClusteringOptions clustering;
  float iou_threshold = 0.5f;  // from which a detection is right
};

class Task : public tasks::Task {
 public:
  explicit Task(const Options& options) : options_(options) {}
  // Of the form that head.h makes.
  void check(const ir::Graph& network) const override;
  ir::Graph executed_graph(const ir::Graph& network) const override;
  // map, the mean average precision over the classes that occur (percent).
  std::unique_ptr<Evaluator> evaluator() const override;
  MetricInfo metric() const override { return {.name = "map", .title = "mAP %"}; }

  // What the network finds in image `index` of the batch, in pixels of its input.
  std::vector<vision::Object> decode(const Outputs& outputs, const data::Batch& batch, int64_t index) const;

 private:
  Options options_;
};

// UserError, naming the image, where an object's class does not lie below `classes`.
void require_classes(const data::Batch& batch, int64_t classes);

}  // namespace octet::tasks::detectnet_v2
