// What an experiment says of DetectNet_v2; names and meaning of the keys as in NVIDIA TAO's specification.
#pragma once
#include <cstdint>

#include "schema/schema.h"
#include "tasks/detectnet_v2/loss_options.h"
#include "tasks/detectnet_v2/postprocessing.h"
#include "tasks/object_evaluator.h"

namespace octet::tasks::detectnet_v2 {

struct Options {
  int64_t stride = 16;  // pixels from one cell of the grid to the next
  LossOptions loss;
  PostprocessingOptions postprocessing;
  ObjectMetricOptions metrics;
};

void describe(schema::Section& section, Options& options);
// From the outputs to objects alone.
void describe_decoder(schema::Section& section, Options& options);

}  // namespace octet::tasks::detectnet_v2
