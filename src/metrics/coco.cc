#include "metrics/coco.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "metrics/by_score.h"
#include "vision/mask.h"

namespace octet::metrics {
namespace {

using vision::Object;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kRecalls = 101;  // 0, 0.01 ... 1

// Evenly from `first` to `last`, rounded as NumPy's linspace: the borders are COCO's to the last bit.
std::vector<double> evenly(double first, double last, size_t count) {
  const double step = (last - first) / static_cast<double>(count - 1);
  std::vector<double> out;
  for (size_t i = 0; i < count; ++i) out.push_back(first + static_cast<double>(i) * step);
  out.back() = last;
  return out;
}

double area_of_box(const vision::Box& box) {
  return std::max(0.0, double{box.x1} - box.x0) * std::max(0.0, double{box.y1} - box.y0);
}

double area_of(const Object& object) {
  return object.mask ? static_cast<double>(vision::area(*object.mask)) : area_of_box(object.box);
}

double overlap_of_boxes(const Object& detection, const Object& object) {
  const double common = area_of_box(vision::intersection(detection.box, object.box)), own = area_of_box(detection.box);
  const double together = object.crowd ? own : own + area_of_box(object.box) - common;
  return together > 0 ? common / together : 0;
}

double overlap_of_masks(const Object& detection, const Object& object) {
  OCTET_CHECK(detection.mask && object.mask, "a detection or an object without a mask");
  return vision::iou(*detection.mask, *object.mask, object.crowd);
}

bool within(const AreaRange& range, double area) {
  return area >= range.least && area <= range.most;
}

}  // namespace

std::vector<AreaRange> coco_areas() {
  return {{"all", 0, 1e10}, {"small", 0, 32 * 32}, {"medium", 32 * 32, 96 * 96}, {"large", 96 * 96, 1e10}};
}

std::vector<double> coco_iou_thresholds() {
  return evenly(0.5, 0.95, 10);
}

CocoResult::CocoResult(const CocoOptions& options) : options_(options) {
  cells_.resize(options.iou_thresholds.size() * static_cast<size_t>(options.classes) * options.areas.size() *
                    options.most_detections.size(),
                {kNan, kNan});
}

size_t CocoResult::place(size_t iou, size_t label, size_t area, size_t most) const {
  const size_t classes = static_cast<size_t>(options_.classes);
  return ((iou * classes + label) * options_.areas.size() + area) * options_.most_detections.size() + most;
}

double CocoResult::mean(const Selection& selection, double Cell::*figure) const {
  const auto chosen = [](int wanted, size_t i) { return wanted == kAll || static_cast<size_t>(wanted) == i; };
  const size_t most =
      selection.most == kAll ? options_.most_detections.size() - 1 : static_cast<size_t>(selection.most);
  double sum = 0;
  int64_t count = 0;
  for (size_t iou = 0; iou < options_.iou_thresholds.size(); ++iou) {
    for (size_t label = 0; label < static_cast<size_t>(options_.classes); ++label) {
      if (!chosen(selection.iou, iou) || !chosen(selection.label, label)) continue;
      const double value = cells_[place(iou, label, static_cast<size_t>(selection.area), most)].*figure;
      if (std::isnan(value)) continue;
      sum += value;
      ++count;
    }
  }
  return count > 0 ? sum / static_cast<double>(count) : kNan;
}

double CocoResult::average_precision(const Selection& selection) const {
  return mean(selection, &Cell::precision);
}
double CocoResult::average_recall(const Selection& selection) const {
  return mean(selection, &Cell::recall);
}

std::array<CocoFigure, 12> coco_figures(const CocoResult& result, int label) {
  const CocoOptions &options = result.options(), coco;
  OCTET_CHECK(options.iou_thresholds == coco.iou_thresholds && options.most_detections == coco.most_detections &&
              options.areas.size() == coco.areas.size());
  const auto precision = [&](int iou, int area) {
    return result.average_precision({.iou = iou, .label = label, .area = area});
  };
  const auto recall = [&](int area, int most) {
    return result.average_recall({.label = label, .area = area, .most = most});
  };
  constexpr int kAny = CocoResult::kAll;
  return {{{"ap", "AP", precision(kAny, 0)},
           {"ap50", "AP50", precision(0, 0)},
           {"ap75", "AP75", precision(5, 0)},
           {"ap_small", "AP small", precision(kAny, 1)},
           {"ap_medium", "AP medium", precision(kAny, 2)},
           {"ap_large", "AP large", precision(kAny, 3)},
           {"ar_1", "AR 1", recall(0, 0)},
           {"ar_10", "AR 10", recall(0, 1)},
           {"ar_100", "AR 100", recall(0, 2)},
           {"ar_small", "AR small", recall(1, 2)},
           {"ar_medium", "AR medium", recall(2, 2)},
           {"ar_large", "AR large", recall(3, 2)}}};
}

CocoAccumulator::CocoAccumulator(const CocoOptions& options)
    : options_(options), classes_(static_cast<size_t>(options.classes)) {
  OCTET_CHECK(options.classes >= 1, options.classes);
  OCTET_CHECK(!options.iou_thresholds.empty() && options.iou_thresholds.size() <= 32, options.iou_thresholds.size());
  OCTET_CHECK(!options.areas.empty() && !options.most_detections.empty());
  OCTET_CHECK(std::is_sorted(options.most_detections.begin(), options.most_detections.end()));
  for (Class& each : classes_) each.objects.resize(options.areas.size(), 0);
}

void CocoAccumulator::add(std::span<const Object> detections, std::span<const Object> truth) {
  ++images_;
  std::vector<std::vector<Object>> found(classes_.size()), there(classes_.size());
  const auto checked = [&](const Object& object) {
    OCTET_CHECK(object.label >= 0 && object.label < options_.classes, "label ", object.label, " of ", options_.classes);
    return static_cast<size_t>(object.label);
  };
  for (const size_t i : order_by_score(detections)) {
    std::vector<Object>& own = found[checked(detections[i])];
    if (std::ssize(own) < options_.most_detections.back()) own.push_back(detections[i]);
  }
  for (const Object& object : truth) there[checked(object)].push_back(object);
  for (size_t label = 0; label < classes_.size(); ++label) add_class(classes_[label], found[label], there[label]);
}

// `detections` come the surest first.
void CocoAccumulator::add_class(Class& own, std::span<const Object> detections, std::span<const Object> truth) const {
  std::vector<std::vector<double>> overlaps;
  for (const Object& detection : detections) {
    std::vector<double>& row = overlaps.emplace_back();
    for (const Object& object : truth)
      row.push_back(options_.region == Region::kBox ? overlap_of_boxes(detection, object)
                                                    : overlap_of_masks(detection, object));
  }
  std::vector<double> sizes;
  for (const Object& object : truth) sizes.push_back(area_of(object));
  const size_t areas = options_.areas.size(), before = own.outcomes.size();
  own.outcomes.resize(before + detections.size() * areas);
  for (size_t i = 0; i < detections.size(); ++i) own.detections.push_back({detections[i].score, static_cast<int>(i)});
  for (size_t area = 0; area < areas; ++area) {
    std::vector<bool> ignored;
    for (size_t i = 0; i < truth.size(); ++i)
      ignored.push_back(truth[i].difficult || truth[i].crowd || !within(options_.areas[area], sizes[i]));
    own.objects[area] += std::count(ignored.begin(), ignored.end(), false);
    std::vector<Outcome> outcomes(detections.size());
    match(truth, overlaps, ignored, outcomes);
    for (size_t i = 0; i < detections.size(); ++i) {
      if (!within(options_.areas[area], area_of(detections[i]))) outcomes[i].ignored |= ~outcomes[i].found;
      own.outcomes[before + i * areas + area] = outcomes[i];
    }
  }
}

// Objects that count are tried before the others, and one of the others only where none of them suits. Where two
// overlap equally, the later one is taken.
void CocoAccumulator::match(std::span<const Object> truth, const std::vector<std::vector<double>>& overlaps,
                            const std::vector<bool>& ignored, std::span<Outcome> outcomes) const {
  std::vector<size_t> order;
  for (const bool wanted : {false, true})
    for (size_t i = 0; i < truth.size(); ++i)
      if (ignored[i] == wanted) order.push_back(i);
  for (size_t threshold = 0; threshold < options_.iou_thresholds.size(); ++threshold) {
    std::vector<bool> taken(truth.size(), false);
    for (size_t i = 0; i < outcomes.size(); ++i) {
      double best = std::min(options_.iou_thresholds[threshold], 1 - 1e-10);
      size_t at = truth.size();
      for (const size_t j : order) {
        if (taken[j] && !truth[j].crowd) continue;
        if (at < truth.size() && !ignored[at] && ignored[j]) break;
        if (overlaps[i][j] < best) continue;
        best = overlaps[i][j];
        at = j;
      }
      if (at == truth.size()) continue;
      taken[at] = true;
      const uint32_t bit = uint32_t{1} << threshold;
      outcomes[i].found |= bit;
      if (ignored[at]) outcomes[i].ignored |= bit;
    }
  }
}

void CocoAccumulator::merge(const CocoAccumulator& other) {
  OCTET_CHECK(classes_.size() == other.classes_.size() && options_.areas.size() == other.options_.areas.size() &&
              options_.iou_thresholds == other.options_.iou_thresholds &&
              options_.most_detections == other.options_.most_detections && options_.region == other.options_.region);
  images_ += other.images_;
  for (size_t i = 0; i < classes_.size(); ++i) {
    const Class& from = other.classes_[i];
    Class& to = classes_[i];
    to.detections.insert(to.detections.end(), from.detections.begin(), from.detections.end());
    to.outcomes.insert(to.outcomes.end(), from.outcomes.begin(), from.outcomes.end());
    for (size_t area = 0; area < to.objects.size(); ++area) to.objects[area] += from.objects[area];
  }
}

// Precision at the 101 recalls, and the recall in the end, of the detections in `order` for one threshold and range.
std::vector<double> CocoAccumulator::curve(const Class& own, std::span<const size_t> order, size_t iou, size_t area,
                                           int most, double* recall) const {
  const uint32_t bit = uint32_t{1} << iou;
  const auto objects = static_cast<double>(own.objects[area]);
  std::vector<double> recalls, precisions;
  int64_t right = 0, all = 0;
  for (const size_t i : order) {
    if (own.detections[i].rank >= most) continue;
    const Outcome& outcome = own.outcomes[i * options_.areas.size() + area];
    if (outcome.ignored & bit) continue;
    right += (outcome.found & bit) != 0;
    ++all;
    recalls.push_back(static_cast<double>(right) / objects);
    precisions.push_back(static_cast<double>(right) / static_cast<double>(all));
  }
  for (size_t i = precisions.size(); i-- > 1;) precisions[i - 1] = std::max(precisions[i - 1], precisions[i]);
  static const std::vector<double> thresholds = evenly(0, 1, kRecalls);
  std::vector<double> out;
  for (const double threshold : thresholds) {
    const auto at = std::lower_bound(recalls.begin(), recalls.end(), threshold) - recalls.begin();
    out.push_back(at < std::ssize(precisions) ? precisions[static_cast<size_t>(at)] : 0);
  }
  *recall = recalls.empty() ? 0 : recalls.back();
  return out;
}

std::vector<size_t> CocoAccumulator::order_of(const Class& own) {
  std::vector<size_t> order(own.detections.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return surer(own.detections[a].score, own.detections[b].score); });
  return order;
}

CocoResult CocoAccumulator::result() const {
  CocoResult out(options_);
  for (size_t label = 0; label < classes_.size(); ++label) {
    const Class& own = classes_[label];
    const std::vector<size_t> order = order_of(own);
    for (size_t area = 0; area < options_.areas.size(); ++area) {
      if (own.objects[area] == 0) continue;
      for (size_t iou = 0; iou < options_.iou_thresholds.size(); ++iou) {
        for (size_t most = 0; most < options_.most_detections.size(); ++most) {
          CocoResult::Cell& cell = out.cells_[out.place(iou, label, area, most)];
          const std::vector<double> precisions =
              curve(own, order, iou, area, options_.most_detections[most], &cell.recall);
          cell.precision = std::accumulate(precisions.begin(), precisions.end(), 0.0) / kRecalls;
        }
      }
    }
  }
  return out;
}

std::vector<double> CocoAccumulator::precision_curve(int iou, int label, int area, int most) const {
  const Class& own = classes_.at(static_cast<size_t>(label));
  if (own.objects.at(static_cast<size_t>(area)) == 0) return {};
  double recall = 0;
  return curve(own, order_of(own), static_cast<size_t>(iou), static_cast<size_t>(area),
               options_.most_detections.at(static_cast<size_t>(most)), &recall);
}

}  // namespace octet::metrics
