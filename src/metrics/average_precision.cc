#include "metrics/average_precision.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "metrics/by_score.h"

namespace octet::metrics {

AveragePrecisionAccumulator::AveragePrecisionAccumulator(const AveragePrecisionOptions& options)
    : options_(options), classes_(static_cast<size_t>(options.classes)) {
  OCTET_CHECK(options.classes >= 1, options.classes);
}

void AveragePrecisionAccumulator::add(std::span<const vision::Object> detections,
                                      std::span<const vision::Object> truth) {
  const auto class_of = [&](const vision::Object& object) -> Class& {
    OCTET_CHECK(object.label >= 0 && object.label < options_.classes, "label ", object.label, " of ", options_.classes);
    return classes_[static_cast<size_t>(object.label)];
  };
  ++images_;
  for (const vision::Object& object : truth) class_of(object).objects += !object.difficult;
  std::vector<const vision::Object*> by_score;
  for (const vision::Object& detection : detections) by_score.push_back(&detection);
  std::stable_sort(by_score.begin(), by_score.end(),
                   [](const auto* a, const auto* b) { return surer(a->score, b->score); });

  std::vector<bool> found(truth.size(), false);
  for (const vision::Object* detection : by_score) {
    float best = -1;
    size_t best_object = 0;
    for (size_t i = 0; i < truth.size(); ++i) {
      if (truth[i].label != detection->label) continue;
      const float overlap = vision::iou(detection->box, truth[i].box, options_.borders);
      if (overlap > best) best = overlap, best_object = i;
    }
    const bool hit = best >= options_.iou_threshold;
    if (hit && truth[best_object].difficult) continue;
    class_of(*detection).detections.push_back({detection->score, hit && !found[best_object]});
    if (hit) found[best_object] = true;
  }
}

void AveragePrecisionAccumulator::merge(const AveragePrecisionAccumulator& other) {
  OCTET_CHECK(classes_.size() == other.classes_.size(), classes_.size(), " classes and ", other.classes_.size());
  images_ += other.images_;
  for (size_t i = 0; i < classes_.size(); ++i) {
    const Class& from = other.classes_[i];
    classes_[i].objects += from.objects;
    classes_[i].detections.insert(classes_[i].detections.end(), from.detections.begin(), from.detections.end());
  }
}

double AveragePrecisionAccumulator::area_under_curve(const std::vector<Detection>& by_score, int64_t objects) const {
  std::vector<double> recall, precision;
  int64_t right = 0;
  for (size_t i = 0; i < by_score.size(); ++i) {
    right += by_score[i].right;
    recall.push_back(static_cast<double>(right) / static_cast<double>(objects));
    precision.push_back(static_cast<double>(right) / static_cast<double>(i + 1));
  }
  // The best precision at this recall or a higher one.
  for (size_t i = precision.size(); i-- > 1;) precision[i - 1] = std::max(precision[i - 1], precision[i]);
  double area = 0;
  if (options_.interpolation == Interpolation::kEnvelope) {
    double before = 0;
    for (size_t i = 0; i < recall.size(); ++i) {
      area += (recall[i] - before) * precision[i];
      before = recall[i];
    }
    return area;
  }
  for (int point = 0; point <= 10; ++point) {
    // Right detections are counted: 3 of 10 objects are a recall of 0.3, however 3.0 / 10 is rounded.
    const auto at = std::find_if(recall.begin(), recall.end(), [&](double r) {
      return std::llround(r * static_cast<double>(objects)) * 10 >= point * objects;
    });
    if (at != recall.end()) area += precision[static_cast<size_t>(at - recall.begin())] / 11;
  }
  return area;
}

DetectionMetrics AveragePrecisionAccumulator::result() const {
  DetectionMetrics metrics;
  double sum = 0;
  int64_t with_objects = 0;
  for (const Class& c : classes_) {
    std::vector<Detection> by_score = c.detections;
    std::stable_sort(by_score.begin(), by_score.end(),
                     [](const Detection& a, const Detection& b) { return surer(a.score, b.score); });
    ClassPrecision out{.average_precision = std::numeric_limits<double>::quiet_NaN(),
                       .objects = c.objects,
                       .detections = static_cast<int64_t>(by_score.size())};
    for (const Detection& d : by_score) out.right += d.right;
    if (c.objects > 0) {
      out.average_precision = area_under_curve(by_score, c.objects);
      sum += out.average_precision;
      ++with_objects;
    }
    metrics.classes.push_back(out);
  }
  metrics.mean_average_precision =
      with_objects > 0 ? sum / static_cast<double>(with_objects) : std::numeric_limits<double>::quiet_NaN();
  return metrics;
}

}  // namespace octet::metrics
