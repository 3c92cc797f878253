// What an experiment says of DetectNet_v2; names and meaning of the keys as in NVIDIA TAO's specification.
#pragma once
#include <cstdint>
#include <vector>

#include "schema/schema.h"
#include "tasks/detectnet_v2/postprocessing.h"
#include "tasks/detectnet_v2/rasterizer.h"
#include "tasks/object_evaluator.h"

namespace octet::tasks::detectnet_v2 {

// TAO's cost_function_config.
struct LossOptions {
  double coverage_foreground_weight = 0.05;  // of cells more than half covered; the others weigh 1 - it
  // initial_weight of the two objectives; they are made to sum up to 1.
  double coverage_weight = 1, bbox_weight = 10;
  std::vector<double> class_weights;  // one for each class; empty: 1
  RasterizerOptions rasterizer;
};

struct Options {
  int64_t stride = 16;  // pixels from one cell of the grid to the next
  LossOptions loss;
  PostprocessingOptions postprocessing;
  ObjectMetricOptions metrics;
};

void describe(schema::Section& section, Options& options);

}  // namespace octet::tasks::detectnet_v2
