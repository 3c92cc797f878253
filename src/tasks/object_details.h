// What lies behind the average precision of a detector.
#pragma once
#include <vector>

#include "data/geometry.h"
#include "metrics/average_precision.h"
#include "tasks/details.h"
#include "tasks/prediction.h"

namespace octet::tasks {

struct MeasuredImage {
  int64_t image = 0;        // in the dataset
  Objects found, truth;     // in pixels of the network's input
  data::Geometry geometry;  // of the image in it
};

// COCO's figures, in pixels of the images (percent); for each class its average precision, precision and recall at the
// score of the best F1, and COCO's precision by size; precision over recall; and the images with the most missed
// objects and wrong detections at those scores. `precision` has seen the same images.
Details object_details(const std::vector<MeasuredImage>& images, const metrics::AveragePrecisionAccumulator& precision);

}  // namespace octet::tasks
