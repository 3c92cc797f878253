// What DetectNet_v2 descends (TAO's cost_function): cross-entropy of the coverage and the distance of the borders, each
// the mean over batch and grid, summed over the classes.
#pragma once
#include "tasks/detectnet_v2/rasterizer.h"
#include "train/loss.h"

namespace octet::tasks::detectnet_v2 {

struct LossOptions {
  float foreground_weight = 0.05f;  // coverage_foreground_weight: of cells more than half covered; others: 1 - it
  // initial_weight of the objectives; they are made to sum up to 1.
  float coverage_weight = 1, box_weight = 10;
  std::vector<float> class_weights;  // one for each class; empty: 1
  RasterizerOptions rasterizer{.classes = {ClassRaster{}}};
};

// Parts: coverage, boxes.
class Loss : public train::Loss {
 public:
  explicit Loss(LossOptions options) : options_(std::move(options)) {}
  train::LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override;

 private:
  LossOptions options_;
};

}  // namespace octet::tasks::detectnet_v2
