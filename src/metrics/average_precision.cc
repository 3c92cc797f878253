#include "metrics/average_precision.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "metrics/by_score.h"

namespace octet::metrics {

namespace {

vision::Box in_whole_pixels(const vision::Box& box) {
  return {std::nearbyint(box.x0), std::nearbyint(box.y0), std::nearbyint(box.x1), std::nearbyint(box.y1)};
}

const ClassMatching& matching_of(const AveragePrecisionOptions& options, int label) {
  OCTET_CHECK(label >= 0 && label < options.classes, "label ", label, " of ", options.classes);
  return options.matching[options.matching.size() == 1 ? 0 : static_cast<size_t>(label)];
}

// The area between the first recall that is reached and the last: a step for each but the last.
double tao_area(const std::vector<double>& recall, const std::vector<double>& precision) {
  double area = 0, best = 0;
  for (size_t i = recall.size(); i-- > 0;) {
    if (recall[i] == recall.back()) continue;
    best = std::max(best, precision[i]);
    // Ends a run of equal recalls, or begins it: the step is counted where the next recall is another.
    const bool begins = i == 0 || recall[i - 1] != recall[i];
    if (begins) area += (*std::upper_bound(recall.begin(), recall.end(), recall[i]) - recall[i]) * best;
  }
  return area;
}

}  // namespace

ImageMatch match_image(std::span<const vision::Object> detections, std::span<const vision::Object> truth,
                       const AveragePrecisionOptions& options) {
  const auto inside = [&](const vision::Object& object) {
    return matching_of(options, object.label).limits.contain(object.box);
  };
  const auto box_of = [&](const vision::Object& object) {
    return options.whole_pixels ? in_whole_pixels(object.box) : object.box;
  };
  ImageMatch out{.detections = std::vector(detections.size(), Verdict::kWrong),
                 .found = std::vector(truth.size(), false),
                 .ignored = std::vector(truth.size(), false)};
  for (size_t i = 0; i < truth.size(); ++i) out.ignored[i] = truth[i].difficult || truth[i].crowd || !inside(truth[i]);
  for (const size_t d : order_by_score(detections)) {
    const vision::Object& detection = detections[d];
    const bool outside = !inside(detection);
    if (outside && options.discard_outside) {
      out.detections[d] = Verdict::kIgnored;
      continue;
    }
    float best = -1;
    size_t best_object = 0;
    for (size_t i = 0; i < truth.size(); ++i) {
      if (truth[i].label != detection.label || (options.discard_outside && !inside(truth[i]))) continue;
      const float overlap = vision::iou(box_of(detection), box_of(truth[i]), options.borders);
      if (overlap > best) best = overlap, best_object = i;
    }
    const bool hit = best >= matching_of(options, detection.label).iou_threshold;
    if (hit ? out.ignored[best_object] : outside)
      out.detections[d] = Verdict::kIgnored;
    else if (hit && !out.found[best_object])
      out.detections[d] = Verdict::kRight;
    if (hit) out.found[best_object] = true;
  }
  return out;
}

AveragePrecisionAccumulator::AveragePrecisionAccumulator(const AveragePrecisionOptions& options)
    : options_(options), classes_(static_cast<size_t>(options.classes)) {
  OCTET_CHECK(options.classes >= 1, options.classes);
  OCTET_CHECK(options.matching.size() == 1 || std::ssize(options.matching) == options.classes, options.matching.size(),
              " rules for ", options.classes, " classes");
}

void AveragePrecisionAccumulator::add(std::span<const vision::Object> detections,
                                      std::span<const vision::Object> truth) {
  ++images_;
  const ImageMatch match = match_image(detections, truth, options_);
  for (size_t i = 0; i < truth.size(); ++i) classes_[static_cast<size_t>(truth[i].label)].objects += !match.ignored[i];
  for (const size_t i : order_by_score(detections))
    if (match.detections[i] != Verdict::kIgnored)
      classes_[static_cast<size_t>(detections[i].label)].detections.push_back(
          {detections[i].score, match.detections[i] == Verdict::kRight});
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

std::vector<AveragePrecisionAccumulator::Detection> AveragePrecisionAccumulator::by_score(const Class& own) {
  std::vector<Detection> out = own.detections;
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return surer(a.score, b.score); });
  return out;
}

double AveragePrecisionAccumulator::area_under_curve(const std::vector<Detection>& by_score, int64_t objects) const {
  std::vector<double> recall, precision;
  int64_t right = 0;
  for (size_t i = 0; i < by_score.size(); ++i) {
    right += by_score[i].right;
    recall.push_back(static_cast<double>(right) / static_cast<double>(objects));
    precision.push_back(static_cast<double>(right) / static_cast<double>(i + 1));
  }
  if (options_.interpolation == Interpolation::kTaoEnvelope) return tao_area(recall, precision);
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
    const std::vector<Detection> sorted = by_score(c);
    ClassPrecision out{.average_precision = std::numeric_limits<double>::quiet_NaN(),
                       .objects = c.objects,
                       .detections = static_cast<int64_t>(sorted.size())};
    for (const Detection& d : sorted) out.right += d.right;
    if (c.objects > 0) {
      out.average_precision = area_under_curve(sorted, c.objects);
      sum += out.average_precision;
      ++with_objects;
    }
    metrics.classes.push_back(out);
  }
  if (options_.mean_of_all) with_objects = options_.classes;
  metrics.mean_average_precision =
      with_objects > 0 ? sum / static_cast<double>(with_objects) : std::numeric_limits<double>::quiet_NaN();
  return metrics;
}

std::vector<OperatingPoint> AveragePrecisionAccumulator::curve(int label) const {
  const Class& own = classes_.at(static_cast<size_t>(label));
  std::vector<OperatingPoint> out;
  if (own.objects == 0) return out;
  const std::vector<Detection> sorted = by_score(own);
  int64_t right = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    right += sorted[i].right;
    if (i + 1 < sorted.size() && !surer(sorted[i].score, sorted[i + 1].score)) continue;
    out.push_back({.score = sorted[i].score,
                   .recall = static_cast<double>(right) / static_cast<double>(own.objects),
                   .precision = static_cast<double>(right) / static_cast<double>(i + 1)});
  }
  return out;
}

}  // namespace octet::metrics
