#include "tasks/detectnet_v2/task.h"

#include "base/error.h"
#include "tasks/detectnet_v2/head.h"
#include "tasks/image_graph.h"

namespace octet::tasks::detectnet_v2 {
namespace {

class MapEvaluator : public Evaluator {
 public:
  MapEvaluator(const Task& task, float iou_threshold) : task_(task), iou_threshold_(iou_threshold) {}
  void add(const Outputs& outputs, const data::Batch& batch) override {
    const int64_t classes = outputs.at(0).shape.at(1);
    require_classes(batch, classes);
    if (!precision_)
      precision_.emplace(
          metrics::AveragePrecisionOptions{.classes = static_cast<int>(classes), .iou_threshold = iou_threshold_});
    for (int64_t i = 0; i < batch.size; ++i)
      precision_->add(task_.decode(outputs, batch, i), batch.truth[static_cast<size_t>(i)].objects);
  }
  Metrics result() const override {
    return {{"map", precision_ ? 100.0 * precision_->result().mean_average_precision : 0.0}};
  }

 private:
  const Task& task_;
  float iou_threshold_;
  std::optional<metrics::AveragePrecisionAccumulator> precision_;
};

}  // namespace

void Task::check(const ir::Graph& network) const {
  const Grid grid = grid_of(network);
  if (options_.classes > 0 && grid.classes != options_.classes)
    fail_usage("output '", network.outputs()[0]->name, "' has ", grid.classes, " classes, the spec says ",
               options_.classes);
}

ir::Graph Task::executed_graph(const ir::Graph& network) const {
  return image_graph(network);
}

std::unique_ptr<Evaluator> Task::evaluator() const {
  return std::make_unique<MapEvaluator>(*this, options_.iou_threshold);
}

std::vector<vision::Object> Task::decode(const Outputs& outputs, const data::Batch& batch, int64_t index) const {
  const OutputView &coverage = outputs.at(0), &boxes = outputs.at(1);
  const Grid grid{.classes = static_cast<int>(coverage.shape.at(1)),
                  .rows = static_cast<int>(coverage.shape.at(2)),
                  .columns = static_cast<int>(coverage.shape.at(3)),
                  .stride = static_cast<int>(batch.height / coverage.shape.at(2))};
  const auto at = [&](const OutputView& output, int64_t size) {
    return output.values.subspan(static_cast<size_t>(index * size), static_cast<size_t>(size));
  };
  return cluster(propose(at(coverage, grid.coverage_size()), at(boxes, grid.box_size()), grid,
                         options_.clustering.coverage_threshold),
                 options_.clustering);
}

void require_classes(const data::Batch& batch, int64_t classes) {
  for (size_t i = 0; i < batch.truth.size(); ++i)
    for (const vision::Object& object : batch.truth[i].objects)
      if (object.label < 0 || object.label >= classes)
        fail("image ", batch.indices[i], " has an object of class ", object.label, ", the network has ", classes,
             " classes");
}

}  // namespace octet::tasks::detectnet_v2
