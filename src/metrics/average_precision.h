// Average precision of detectors as PASCAL VOC defines it (Everingham et al. 2010; development kit of VOC 2012): over
// all images the detections of a class are taken by falling score; each goes to the object of its class that it
// overlaps most. It is right where that overlap reaches the threshold and nothing was there before it; a second
// detection of an object is wrong. Difficult objects count neither way, and neither do detections of them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "vision/box.h"

namespace octet::metrics {

// Which area under the curve of precision over recall.
enum class Interpolation {
  kEnvelope,     // all of it, precision made monotonic: VOC 2010 and later
  kElevenPoint,  // the mean of the best precision at recall >= 0, 0.1 ... 1: VOC 2007
};

struct AveragePrecisionOptions {
  int classes = 1;             // labels lie in [0, classes)
  float iou_threshold = 0.5f;  // an overlap of exactly this is enough
  Interpolation interpolation = Interpolation::kEnvelope;
  vision::Borders borders = vision::Borders::kExclusive;  // the development kit's is kInclusive
};

struct ClassPrecision {
  double average_precision = 0;  // NaN for a class without objects
  int64_t objects = 0;           // without the difficult ones
  int64_t detections = 0;        // without those of difficult objects
  int64_t right = 0;             // of the detections
};

struct DetectionMetrics {
  std::vector<ClassPrecision> classes;
  double mean_average_precision = 0;  // over the classes that have objects; NaN where none has
};

class AveragePrecisionAccumulator {
 public:
  explicit AveragePrecisionAccumulator(const AveragePrecisionOptions& options);

  // One image. Detections may come in any order; those of equal score count in the order of the images and, within an
  // image, as given. A NaN score ranks last.
  void add(std::span<const vision::Object> detections, std::span<const vision::Object> truth);
  // Adds the images of another part of the data, as if they came after the own; same options.
  void merge(const AveragePrecisionAccumulator& other);

  int64_t images() const { return images_; }
  DetectionMetrics result() const;

 private:
  struct Detection {
    float score;
    bool right;
  };
  struct Class {
    std::vector<Detection> detections;  // in order of arrival
    int64_t objects = 0;
  };
  double area_under_curve(const std::vector<Detection>& by_score, int64_t objects) const;

  AveragePrecisionOptions options_;
  std::vector<Class> classes_;
  int64_t images_ = 0;
};

}  // namespace octet::metrics
