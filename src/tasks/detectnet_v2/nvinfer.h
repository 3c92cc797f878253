// DetectNet_v2 in DeepStream, whose built-in detector reads just this head.
#pragma once
#include "tasks/detectnet_v2/postprocessing.h"
#include "tasks/nvinfer.h"

namespace octet::tasks::detectnet_v2 {

// nvinfer's own parser takes the outputs whose names have "cov" and "bbox" in them, with the scale and offset of
// grid.h. `classes`: of the network; their thresholds are those of `options` by label.
NvinferReading nvinfer_reading(const PostprocessingOptions& options, int64_t classes);

}  // namespace octet::tasks::detectnet_v2
