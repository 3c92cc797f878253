#include "tasks/detectnet_v2/task.h"

#include "base/error.h"
#include "tasks/image_graph.h"

namespace octet::tasks::detectnet_v2 {
namespace {

// What the network finds in image `index` of the batch.
Objects detect(const Outputs& outputs, const data::Batch& batch, int64_t index, const ClusteringOptions& options) {
  const OutputView &coverage = outputs.at(0), &boxes = outputs.at(1);
  const Grid grid{.classes = static_cast<int>(coverage.shape.at(1)),
                  .rows = static_cast<int>(coverage.shape.at(2)),
                  .columns = static_cast<int>(coverage.shape.at(3)),
                  .stride = static_cast<int>(batch.height / coverage.shape.at(2))};
  const auto at = [&](const OutputView& output, int64_t size) {
    return output.values.subspan(static_cast<size_t>(index * size), static_cast<size_t>(size));
  };
  return cluster(propose(at(coverage, grid.coverage_size()), at(boxes, grid.box_size()), grid,
                         static_cast<float>(options.coverage_threshold)),
                 options);
}

class PrecisionEvaluator : public Evaluator {
 public:
  explicit PrecisionEvaluator(const Options& options) : options_(options) {}
  void add(const Outputs& outputs, const data::Batch& batch) override {
    const int64_t classes = outputs.at(0).shape.at(1);
    require_classes(batch, classes);
    if (!precision_)
      precision_.emplace(metrics::AveragePrecisionOptions{.classes = static_cast<int>(classes),
                                                          .iou_threshold = static_cast<float>(options_.iou_threshold),
                                                          .interpolation = options_.average_precision});
    for (int64_t i = 0; i < batch.size; ++i)
      precision_->add(detect(outputs, batch, i, options_.clustering), batch.truth[static_cast<size_t>(i)].objects);
  }
  Metrics result() const override {
    return {{"map", precision_ ? 100.0 * precision_->result().mean_average_precision : 0.0}};
  }
  std::vector<double> classes() const override {
    std::vector<double> out;
    if (precision_)
      for (const metrics::ClassPrecision& each : precision_->result().classes)
        out.push_back(100.0 * each.average_precision);
    return out;
  }

 private:
  Options options_;
  std::optional<metrics::AveragePrecisionAccumulator> precision_;
};

}  // namespace

std::unique_ptr<tasks::Task> make_task() {
  return std::make_unique<Task>(Options{});
}

ir::Graph Task::build(const models::ModelOptions& options) const {
  return add_head(models::build_backbone(options), options.num_classes, options_.stride, options.seed);
}

void Task::check(const Signature& network, int64_t classes) const {
  const Grid grid = grid_of(network);
  if (classes > 0 && grid.classes != classes)
    fail_usage("output '", network.outputs[0].name, "' has ", grid.classes,
               " classes, the spec says model.num_classes: ", classes);
}

ir::Graph Task::executed_graph(const ir::Graph& network) const {
  return image_graph(network);
}

std::vector<Prediction> Task::decode(const Outputs& outputs, const data::Batch& batch) const {
  std::vector<Prediction> out;
  for (int64_t i = 0; i < batch.size; ++i) out.push_back(detect(outputs, batch, i, options_.clustering));
  return out;
}

std::unique_ptr<Evaluator> Task::evaluator() const {
  return std::make_unique<PrecisionEvaluator>(options_);
}

void require_classes(const data::Batch& batch, int64_t classes) {
  for (size_t i = 0; i < batch.truth.size(); ++i)
    for (const vision::Object& object : batch.truth[i].objects)
      if (object.label < 0 || object.label >= classes)
        fail("image ", batch.indices[i], " has an object of class ", object.label, ", the network has ", classes,
             " classes");
}

}  // namespace octet::tasks::detectnet_v2
