#include "tasks/detectnet_v2/task.h"

#include "base/error.h"
#include "tasks/detectnet_v2/decode.h"
#include "tasks/detectnet_v2/nvinfer.h"
#include "tasks/image_graph.h"

namespace octet::tasks::detectnet_v2 {
namespace {

// What the network finds in image `index` of the batch.
Objects detect(const Outputs& outputs, const data::Batch& batch, int64_t index, const PostprocessingOptions& options) {
  const OutputView &coverage = outputs.at(0), &boxes = outputs.at(1);
  const Grid grid{.classes = static_cast<int>(coverage.shape.at(1)),
                  .rows = static_cast<int>(coverage.shape.at(2)),
                  .columns = static_cast<int>(coverage.shape.at(3)),
                  .stride = static_cast<int>(batch.height / coverage.shape.at(2))};
  const auto at = [&](const OutputView& output, int64_t size) {
    return output.values.subspan(static_cast<size_t>(index * size), static_cast<size_t>(size));
  };
  return cluster(propose(at(coverage, grid.coverage_size()), at(boxes, grid.box_size()), grid, options), options);
}

Detections detect_all(const Outputs& outputs, const data::Batch& batch, const PostprocessingOptions& options) {
  Detections found{.images = {}, .classes = outputs.at(0).shape.at(1)};
  for (int64_t i = 0; i < batch.size; ++i) found.images.push_back(detect(outputs, batch, i, options));
  return found;
}

}  // namespace

std::unique_ptr<tasks::Task> make_task() {
  return std::make_unique<Task>(Options{});
}

ir::Graph Task::build(const models::ModelOptions& options) const {
  return add_head(models::build_backbone(options), options.num_classes, options_.stride, options.seed);
}

void Task::name_classes(const std::vector<std::string>& names) {
  options_.loss.name_classes(names);
  options_.postprocessing.clustering.resolve(names, "detectnet_v2.postprocessing.target_class_config");
  options_.metrics.matching.resolve(names, "detectnet_v2.evaluation.target_class_config");
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
  for (Objects& objects : detect_all(outputs, batch, options_.postprocessing).images)
    out.emplace_back(std::move(objects));
  return out;
}

NvinferReading Task::nvinfer(const Signature& network) const {
  return nvinfer_reading(options_.postprocessing, classes(network));
}

std::unique_ptr<Evaluator> Task::evaluator() const {
  const auto detect = [postprocessing = options_.postprocessing](const Outputs& outputs, const data::Batch& batch) {
    return detect_all(outputs, batch, postprocessing);
  };
  return object_evaluator(detect, options_.metrics);
}

}  // namespace octet::tasks::detectnet_v2
