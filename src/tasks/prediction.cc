#include "tasks/prediction.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

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

// The object of the same class that overlaps it most, where that is enough.
const vision::Object* counterpart_of(const vision::Object& object, const Objects& others) {
  const vision::Object* best = nullptr;
  float overlap = kSamePlace;
  for (const vision::Object& other : others) {
    if (other.label != object.label) continue;
    const float own = vision::iou(other.box, object.box);
    if (own < overlap) continue;
    overlap = own;
    best = &other;
  }
  return best;
}

// The sure objects of `a`; those of `b` too that `a` has, but is not sure of.
void compare_objects(const Objects& a, const Objects& b, bool sure_there_too, Distance& out) {
  for (const vision::Object& object : a) {
    if (object.score < kSure) continue;
    const vision::Object* other = counterpart_of(object, b);
    if (other != nullptr && other->score >= kSure && !sure_there_too) continue;  // seen from the other side
    ++out.compared;
    if (other == nullptr) {
      ++out.unmatched;
      continue;
    }
    const vision::Box &p = object.box, &q = other->box;
    double box = 0;
    for (const auto& [x, y] : {std::pair(p.x0, q.x0), {p.y0, q.y0}, {p.x1, q.x1}, {p.y1, q.y1}})
      box = std::max(box, std::abs(double{x} - y));
    const double score =
        std::abs(double{object.score} - other->score) / std::max({1.0, double{object.score}, double{other->score}});
    out.near += box <= Distance::kNearBox && score <= Distance::kNearScore;
    out.box = std::max(out.box, box);
    out.score = std::max(out.score, score);
  }
}

}  // namespace

void Distance::merge(const Distance& other) {
  of_boxes = of_boxes || other.of_boxes;
  compared += other.compared;
  unmatched += other.unmatched;
  near += other.near;
  box = std::max(box, other.box);
  score = std::max(score, other.score);
}

Distance distance(const Prediction& a, const Prediction& b) {
  OCTET_CHECK(a.index() == b.index());
  Distance out;
  if (const auto* scores = std::get_if<ClassScores>(&a)) {
    const std::vector<float>& others = std::get<ClassScores>(b).probabilities;
    OCTET_CHECK(scores->probabilities.size() == others.size());
    out.compared = 1;
    for (size_t i = 0; i < others.size(); ++i)
      out.score = std::max(out.score, std::abs(double{scores->probabilities[i]} - others[i]));
    out.near = out.score <= Distance::kNearScore;
    return out;
  }
  const Objects &first = std::get<Objects>(a), &second = std::get<Objects>(b);
  out.of_boxes = true;
  compare_objects(first, second, true, out);
  compare_objects(second, first, false, out);
  return out;
}

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
