// Measures the tasks whose predictions are objects: what a network finds against the objects that the images have.
#pragma once
#include <functional>
#include <memory>

#include "tasks/object_metrics.h"
#include "tasks/task.h"

namespace octet::tasks {

// What a network finds in every image of a batch, and how many classes it tells apart.
struct Detections {
  std::vector<Objects> images;
  int64_t classes = 0;
};
using Detect = std::function<Detections(const Outputs&, const data::Batch&)>;

// object_metrics() of all images.
std::unique_ptr<Evaluator> object_evaluator(Detect detect, const ObjectMetricOptions& options);
// map: mean average precision over the classes that occur, in percent.
std::vector<MetricInfo> object_metrics();

// UserError, naming the image, where an object's class does not lie below `classes`.
void require_classes(const data::Batch& batch, int64_t classes);

}  // namespace octet::tasks
