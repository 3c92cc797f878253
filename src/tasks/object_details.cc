#include "tasks/object_details.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "metrics/coco.h"

namespace octet::tasks {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kCurvePoints = 200, kWorstImages = 12;

Objects in_image(Objects objects, const data::Geometry& geometry) {
  for (vision::Object& object : objects) object.box = geometry.to_image(object.box), object.mask = nullptr;
  return objects;
}

metrics::CocoResult coco_result(const std::vector<MeasuredImage>& images, int classes) {
  metrics::CocoAccumulator coco({.classes = classes});
  for (const MeasuredImage& each : images)
    coco.add(in_image(each.found, each.geometry), in_image(each.truth, each.geometry));
  return coco.result();
}

// The point of the best F1; of none where there is no right detection.
metrics::OperatingPoint best_point(const std::vector<metrics::OperatingPoint>& curve) {
  const auto best =
      std::max_element(curve.begin(), curve.end(), [](const auto& a, const auto& b) { return a.f1() < b.f1(); });
  if (best != curve.end() && best->f1() > 0) return *best;
  return {.score = std::numeric_limits<float>::infinity(), .recall = 0, .precision = kNan};
}

// At most kCurvePoints, the first and the last among them.
CurveLine line_of(int label, const std::vector<metrics::OperatingPoint>& curve) {
  CurveLine line{.label = label, .x = {}, .y = {}};
  const size_t points = std::min(curve.size(), kCurvePoints);
  for (size_t i = 0; i < points; ++i) {
    const metrics::OperatingPoint& point = curve[points == 1 ? 0 : i * (curve.size() - 1) / (points - 1)];
    line.x.push_back(point.recall);
    line.y.push_back(point.precision);
  }
  return line;
}

ImageRemark remark_of(const MeasuredImage& each, const std::vector<float>& least_scores,
                      const metrics::AveragePrecisionOptions& options) {
  Objects sure;
  for (const vision::Object& object : each.found)
    if (object.score >= least_scores[static_cast<size_t>(object.label)]) sure.push_back(object);
  const metrics::ImageMatch match = metrics::match_image(sure, each.truth, options);
  ImageRemark remark{.image = each.image, .text = {}, .marks = {}};
  int missed = 0, wrong = 0;
  const auto mark = [&](vision::Object object, Outcome outcome) {
    object.box = each.geometry.to_image(object.box);
    remark.marks.push_back({.object = object, .outcome = outcome});
  };
  for (size_t i = 0; i < sure.size(); ++i) {
    if (match.detections[i] == metrics::Verdict::kIgnored) continue;
    const bool right = match.detections[i] == metrics::Verdict::kRight;
    wrong += !right;
    mark(sure[i], right ? Outcome::kRight : Outcome::kWrong);
  }
  for (size_t i = 0; i < each.truth.size(); ++i) {
    if (match.found[i] || match.ignored[i]) continue;
    ++missed;
    mark(each.truth[i], Outcome::kMissed);
  }
  remark.text = str(missed, " missed, ", wrong, " wrong");
  return remark;
}

int64_t faults_in(const ImageRemark& remark) {
  return std::count_if(remark.marks.begin(), remark.marks.end(),
                       [](const Mark& mark) { return mark.outcome != Outcome::kRight; });
}

std::vector<ImageRemark> worst_images(const std::vector<MeasuredImage>& images, const std::vector<float>& least_scores,
                                      const metrics::AveragePrecisionOptions& options) {
  std::vector<ImageRemark> out;
  for (const MeasuredImage& each : images) {
    ImageRemark remark = remark_of(each, least_scores, options);
    if (faults_in(remark) > 0) out.push_back(std::move(remark));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return faults_in(a) > faults_in(b); });
  if (out.size() > kWorstImages) out.resize(kWorstImages);
  return out;
}

}  // namespace

Details object_details(const std::vector<MeasuredImage>& images,
                       const metrics::AveragePrecisionAccumulator& precision) {
  const int classes = precision.options().classes;
  const metrics::CocoResult coco = coco_result(images, classes);
  Details out{.figures = {},
              .columns = {{.name = "ap", .title = "AP", .unit = "%"},
                          {.name = "objects", .title = "objects", .unit = ""},
                          {.name = "precision", .title = "precision", .unit = "%"},
                          {.name = "recall", .title = "recall", .unit = "%"},
                          {.name = "score", .title = "from score", .unit = ""},
                          {.name = "coco_ap", .title = "COCO AP", .unit = "%"},
                          {.name = "coco_ap_small", .title = "small", .unit = "%"},
                          {.name = "coco_ap_medium", .title = "medium", .unit = "%"},
                          {.name = "coco_ap_large", .title = "large", .unit = "%"}},
              .classes = {},
              .curves = {{.name = "precision_recall",
                          .title = "Precision over recall",
                          .x_label = "recall",
                          .y_label = "precision",
                          .lines = {}}},
              .worst = {}};
  for (const metrics::CocoFigure& figure : metrics::coco_figures(coco))
    out.figures.push_back({.info = {.name = "coco_" + figure.name, .title = "COCO " + figure.title, .unit = "%"},
                           .value = 100 * figure.value});
  const metrics::DetectionMetrics result = precision.result();
  std::vector<float> least_scores;
  for (int label = 0; label < classes; ++label) {
    const metrics::ClassPrecision& own = result.classes[static_cast<size_t>(label)];
    const std::vector<metrics::OperatingPoint> curve = precision.curve(label);
    const metrics::OperatingPoint best = best_point(curve);
    least_scores.push_back(best.score);
    std::vector<double> row = {100 * own.average_precision, static_cast<double>(own.objects), 100 * best.precision,
                               own.objects > 0 ? 100 * best.recall : kNan,
                               std::isfinite(best.score) ? best.score : kNan};
    for (int area = 0; area < 4; ++area) row.push_back(100 * coco.average_precision({.label = label, .area = area}));
    out.classes.push_back(std::move(row));
    if (!curve.empty()) out.curves[0].lines.push_back(line_of(label, curve));
  }
  out.worst = worst_images(images, least_scores, precision.options());
  return out;
}

}  // namespace octet::tasks
