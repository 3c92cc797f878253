#include "tasks/detectnet_v2/loss.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "tasks/detectnet_v2/task.h"

namespace octet::tasks::detectnet_v2 {
namespace {

struct Targets {
  at::Tensor coverage, box_weight, boxes;  // [batch, classes, rows, columns]; boxes with 4 * classes channels
};

Targets draw(const data::Batch& batch, const Grid& grid, const RasterizerOptions& options) {
  Targets t{.coverage = at::empty({batch.size, grid.classes, grid.rows, grid.columns}, at::kFloat),
            .box_weight = at::empty({batch.size, grid.classes, grid.rows, grid.columns}, at::kFloat),
            .boxes = at::empty({batch.size, 4 * grid.classes, grid.rows, grid.columns}, at::kFloat)};
  for (int64_t i = 0; i < batch.size; ++i) {
    const GridTruth truth = rasterize(batch.truth[static_cast<size_t>(i)].objects, grid, options);
    std::copy(truth.coverage.begin(), truth.coverage.end(),
              t.coverage.mutable_data_ptr<float>() + i * grid.coverage_size());
    std::copy(truth.coverage_weight.begin(), truth.coverage_weight.end(),
              t.box_weight.mutable_data_ptr<float>() + i * grid.coverage_size());
    std::copy(truth.boxes.begin(), truth.boxes.end(), t.boxes.mutable_data_ptr<float>() + i * grid.box_size());
  }
  return t;
}

}  // namespace

std::unique_ptr<train::Loss> make_loss(const tasks::Task& task) {
  return std::make_unique<Loss>(dynamic_cast<const Task&>(task).options().loss);
}

train::LossParts Loss::operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) {
  const at::Tensor &coverage = outputs.at(0), &boxes = outputs.at(1);
  const Grid grid{.classes = static_cast<int>(coverage.size(1)),
                  .rows = static_cast<int>(coverage.size(2)),
                  .columns = static_cast<int>(coverage.size(3)),
                  .stride = static_cast<int>(batch.height / coverage.size(2))};
  require_classes(batch, grid.classes);
  const Targets truth = draw(batch, grid, options_.rasterizer);
  const at::Tensor target = truth.coverage.to(coverage.device()), box_weight = truth.box_weight.to(boxes.device());
  std::vector<float> weights(options_.class_weights.begin(), options_.class_weights.end());
  if (weights.empty()) weights.assign(static_cast<size_t>(grid.classes), 1.0f);
  if (std::ssize(weights) != grid.classes)
    fail_usage("cost_function.class_weights has ", weights.size(), " values, the network has ", grid.classes,
               " classes; give one for each");
  const at::Tensor class_weight = at::tensor(weights).to(coverage.device());
  const double sum = options_.coverage_weight + options_.bbox_weight;

  constexpr double kEpsilon = 1e-5;
  const at::Tensor entropy = -(target * (coverage + kEpsilon).log() + (1 - target) * (1 - coverage + kEpsilon).log()) *
                             at::where(target > 0.5, at::full({}, options_.coverage_foreground_weight),
                                       at::full({}, 1 - options_.coverage_foreground_weight));
  const at::Tensor coverage_cost = entropy.mean({0, 2, 3});  // of each class
  const at::Tensor distance =
      (boxes - truth.boxes.to(boxes.device())).abs().reshape({batch.size, grid.classes, 4, grid.rows, grid.columns});
  const at::Tensor box_cost = (distance * box_weight.unsqueeze(2)).mean({0, 2, 3, 4});
  return {{"coverage", (coverage_cost * class_weight).sum() * (options_.coverage_weight / sum)},
          {"boxes", (box_cost * class_weight).sum() * (options_.bbox_weight / sum)}};
}

}  // namespace octet::tasks::detectnet_v2
