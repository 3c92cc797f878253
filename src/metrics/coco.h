// Average precision and recall of detections as COCO defines them (Lin et al. 2014; cocoeval.py of its API), of boxes
// or masks: in each image and class the detections are taken by falling score, and each goes to the object not yet
// found that it overlaps most, where that is at least the threshold. Crowds and difficult objects, and those whose area
// lies outside the range that is measured, count neither way, and neither do detections of them; nor do detections of
// nothing whose own area lies outside. A crowd may be found many times, and a detection overlaps it by the part of
// itself that lies in it.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vision/box.h"

namespace octet::metrics {

// Of an object: of its mask where it has one, else of its box. Square pixels, both included.
struct AreaRange {
  std::string name;
  double least = 0, most = 0;
};
std::vector<AreaRange> coco_areas();        // all, small (to 32 x 32), medium, large (from 96 x 96)
std::vector<double> coco_iou_thresholds();  // 0.5, 0.55 ... 0.95

enum class Region { kBox, kMask };

struct CocoOptions {
  int classes = 1;               // labels lie in [0, classes)
  Region region = Region::kBox;  // what overlaps; for masks every object must have one, of the size of its image
  std::vector<double> iou_thresholds = coco_iou_thresholds();  // 1 to 32; an overlap of exactly this is enough
  std::vector<AreaRange> areas = coco_areas();
  // In an image the surest of each class that take part, rising: each gives figures of its own.
  std::vector<int> most_detections = {1, 10, 100};
};

// Average precisions and recalls by IoU threshold, class, range of area and number of detections.
class CocoResult {
 public:
  // Indices into the lists of the options; kAll: the mean over all that have objects.
  static constexpr int kAll = -1;
  struct Selection {
    int iou = kAll, label = kAll;
    int area = 0;
    int most = kAll;  // here the last, which is the largest
  };
  // Means over what is selected; NaN where there is no object. 0 .. 1.
  double average_precision(const Selection& selection) const;
  double average_recall(const Selection& selection) const;
  const CocoOptions& options() const { return options_; }

 private:
  friend class CocoAccumulator;
  struct Cell {
    double precision, recall;  // NaN without objects
  };
  explicit CocoResult(const CocoOptions& options);
  size_t place(size_t iou, size_t label, size_t area, size_t most) const;  // in cells_
  double mean(const Selection& selection, double Cell::*figure) const;

  CocoOptions options_;
  std::vector<Cell> cells_;
};

struct CocoFigure {
  std::string name;   // "ap_small"
  std::string title;  // "AP, small"
  double value;       // 0 .. 1; NaN where there is no object
};
// The twelve figures of COCO's leaderboard in its order: ap, ap50, ap75, ap_small, ap_medium, ap_large, ar_1, ar_10,
// ar_100, ar_small, ar_medium, ar_large. Of all classes, or of one. Requires COCO's own thresholds, areas and numbers
// of detections.
std::array<CocoFigure, 12> coco_figures(const CocoResult& result, int label = CocoResult::kAll);

class CocoAccumulator {
 public:
  explicit CocoAccumulator(const CocoOptions& options);

  // One image. Detections may come in any order; those of equal score count in the order of the images and, within an
  // image, as given. A NaN score ranks last.
  void add(std::span<const vision::Object> detections, std::span<const vision::Object> truth);
  // Adds the images of another part of the data, as if they came after the own; same options.
  void merge(const CocoAccumulator& other);

  int64_t images() const { return images_; }
  CocoResult result() const;
  // Precision at recall 0, 0.01 ... 1 (the best at this recall or a higher one); empty where there is no object.
  // Indices into the lists of the options.
  std::vector<double> precision_curve(int iou, int label, int area, int most) const;

 private:
  // What became of a detection for one range of areas; a bit for each IoU threshold.
  struct Outcome {
    uint32_t found = 0, ignored = 0;
  };
  struct Detection {
    float score;
    int rank;  // among those of its class in its image, from 0
  };
  struct Class {
    std::vector<Detection> detections;  // in order of arrival
    std::vector<Outcome> outcomes;      // [detection][area]
    std::vector<int64_t> objects;       // [area], without the ignored ones
  };
  void add_class(Class& own, std::span<const vision::Object> detections, std::span<const vision::Object> truth) const;
  void match(std::span<const vision::Object> truth, const std::vector<std::vector<double>>& overlaps,
             const std::vector<bool>& ignored, std::span<Outcome> outcomes) const;
  static std::vector<size_t> order_of(const Class& own);
  std::vector<double> curve(const Class& own, std::span<const size_t> order, size_t iou, size_t area, int most,
                            double* recall) const;

  CocoOptions options_;
  std::vector<Class> classes_;
  int64_t images_ = 0;
};

}  // namespace octet::metrics
