// Average precision of detectors as PASCAL VOC defines it (Everingham et al. 2010; development kit of VOC 2012): over
// all images the detections of a class are taken by falling score; each goes to the object of its class that it
// overlaps most. It is right where that overlap reaches the threshold and nothing was there before it; a second
// detection of an object is wrong. Difficult objects count neither way, and neither do detections of them.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "vision/box.h"

namespace octet::metrics {

// Which area under the curve of precision over recall.
enum class Interpolation {
  kEnvelope,     // all of it, precision made monotonic: VOC 2010 and later
  kElevenPoint,  // the mean of the best precision at recall >= 0, 0.1 ... 1: VOC 2007
  // The envelope between the first and the last recall that is reached, without what lies before the first and without
  // the precisions at the last: TAO's INTEGRATE. A perfect detector of n objects has 1 - 1 / n.
  kTaoEnvelope,
};

// Sides of boxes, in pixels, borders included.
struct BoxLimits {
  double minimum_width = 0, maximum_width = std::numeric_limits<double>::infinity();
  double minimum_height = 0, maximum_height = std::numeric_limits<double>::infinity();
  bool contain(const vision::Box& box) const {
    return box.width() >= minimum_width && box.width() <= maximum_width && box.height() >= minimum_height &&
           box.height() <= maximum_height;
  }
};

struct ClassMatching {
  float iou_threshold = 0.5f;  // an overlap of exactly this is enough
  // Objects outside count neither way, nor do detections of them, nor detections of nothing that lie outside
  // themselves.
  BoxLimits limits;
};

struct AveragePrecisionOptions {
  int classes = 1;                             // labels lie in [0, classes)
  std::vector<ClassMatching> matching = {{}};  // one for each class, or one for all
  Interpolation interpolation = Interpolation::kEnvelope;
  vision::Borders borders = vision::Borders::kExclusive;  // the development kit's is kInclusive
  bool whole_pixels = false;     // coordinates are rounded before they are compared, halves to even (TAO)
  bool discard_outside = false;  // what lies outside the limits is as if it were not there (TAO)
  bool mean_of_all = false;      // classes without objects count as 0 in the mean (TAO)
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

// All detections of at least a score.
struct OperatingPoint {
  float score = 0;
  double recall = 0, precision = 0;
  double f1() const { return recall + precision > 0 ? 2 * recall * precision / (recall + precision) : 0; }
};

// What became of one detection.
enum class Verdict { kRight, kWrong, kIgnored };
struct ImageMatch {
  std::vector<Verdict> detections;  // of each, as given
  std::vector<bool> found;          // of each object; ignored ones that were found, too
  std::vector<bool> ignored;        // of each object
};
// Of one image; score order as in AveragePrecisionAccumulator::add.
ImageMatch match_image(std::span<const vision::Object> detections, std::span<const vision::Object> truth,
                       const AveragePrecisionOptions& options);

class AveragePrecisionAccumulator {
 public:
  explicit AveragePrecisionAccumulator(const AveragePrecisionOptions& options);

  // One image. Detections may come in any order; those of equal score count in the order of the images and, within an
  // image, as given. A NaN score ranks last.
  void add(std::span<const vision::Object> detections, std::span<const vision::Object> truth);
  // Adds the images of another part of the data, as if they came after the own; same options.
  void merge(const AveragePrecisionAccumulator& other);

  const AveragePrecisionOptions& options() const { return options_; }
  int64_t images() const { return images_; }
  DetectionMetrics result() const;
  // One point for each score that occurs, by falling score; empty for a class without objects.
  std::vector<OperatingPoint> curve(int label) const;

 private:
  struct Detection {
    float score;
    bool right;
  };
  struct Class {
    std::vector<Detection> detections;  // in order of arrival
    int64_t objects = 0;
  };
  static std::vector<Detection> by_score(const Class& own);
  double area_under_curve(const std::vector<Detection>& by_score, int64_t objects) const;

  AveragePrecisionOptions options_;
  std::vector<Class> classes_;
  int64_t images_ = 0;
};

}  // namespace octet::metrics
