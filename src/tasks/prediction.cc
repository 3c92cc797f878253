#include "tasks/prediction.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "metrics/top_k.h"

namespace octet::tasks {
namespace {

// A rounding that falls the other way moves a score a little and may make one cluster of two, or two of one. So an
// object is sure well above the scores from which detectors keep clusters, and it is found where metrics would say so.
constexpr float kSure = 0.6f, kSamePlace = 0.5f;

bool holds_sure_ones_of(const Objects& found, const Objects& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const vision::Object& object) {
    return object.score < kSure || std::any_of(found.begin(), found.end(), [&](const vision::Object& other) {
             return other.label == object.label && vision::iou(other.box, object.box) >= kSamePlace;
           });
  });
}

}  // namespace

bool agree(const Prediction& a, const Prediction& b) {
  OCTET_CHECK(a.index() == b.index());
  if (const auto* scores = std::get_if<ClassScores>(&a))
    return metrics::top_1(scores->probabilities) == metrics::top_1(std::get<ClassScores>(b).probabilities);
  const Objects &first = std::get<Objects>(a), &second = std::get<Objects>(b);
  return holds_sure_ones_of(first, second) && holds_sure_ones_of(second, first);
}

std::string summary(const Prediction& prediction) {
  if (const auto* scores = std::get_if<ClassScores>(&prediction)) {
    const int best = metrics::top_1(scores->probabilities);
    char text[64];
    std::snprintf(text, sizeof text, "class %d (%.4f)", best, scores->probabilities[static_cast<size_t>(best)]);
    return text;
  }
  const Objects& objects = std::get<Objects>(prediction);
  return str(std::count_if(objects.begin(), objects.end(), [](const vision::Object& o) { return o.score >= kSure; }),
             " sure objects");
}

}  // namespace octet::tasks
