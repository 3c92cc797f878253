// What an experiment says of how objects are measured, for every task that finds some.
#pragma once
#include "metrics/average_precision.h"
#include "schema/schema.h"
#include "tasks/by_class.h"

namespace octet::tasks {

// Which objects and detections are measured, and how they are matched; names as in TAO's evaluation_config.
struct ObjectMatchingOptions {
  double minimum_detection_ground_truth_overlap = 0.5;  // IoU from which a detection is right
  metrics::BoxLimits evaluation_box{.maximum_width = 1e6, .maximum_height = 1e6};  // pixels of the network's input
};

struct ObjectMetricOptions {
  ByClass<ObjectMatchingOptions> matching;
  metrics::Interpolation average_precision = metrics::Interpolation::kEnvelope;
  // As TAO measures: coordinates are rounded to whole pixels, both borders of a box count, what lies outside
  // evaluation_box is as if it were not there, the envelope begins at the first recall that is reached, and classes
  // without objects are 0 in the mean.
  bool tao_compatible = false;
};
// Adds the section `evaluation` to that of a task.
void describe_object_metrics(schema::Section& section, ObjectMetricOptions& options);
// VOC's average precision as the options say.
metrics::AveragePrecisionOptions average_precision_options(const ObjectMetricOptions& options, int classes);

}  // namespace octet::tasks
