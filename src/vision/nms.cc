#include "vision/nms.h"

#include <map>

namespace octet::vision {

std::vector<int64_t> nms(std::span<const Object> objects, const NmsOptions& options) {
  const auto object = [&](int64_t i) -> const Object& { return objects[static_cast<size_t>(i)]; };
  std::vector<int64_t> order;
  for (size_t i = 0; i < objects.size(); ++i)
    if (objects[i].score >= options.score_threshold) order.push_back(static_cast<int64_t>(i));
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return object(a).score > object(b).score; });

  struct Class {
    std::vector<int64_t> kept;
    int64_t seen = 0;
  };
  std::map<int, Class> classes;
  std::vector<int64_t> kept;
  for (const int64_t i : order) {
    if (options.most > 0 && static_cast<int64_t>(kept.size()) == options.most) break;
    Class& own = classes[options.across_classes ? 0 : object(i).label];
    if (options.candidates > 0 && own.seen == options.candidates) continue;
    ++own.seen;
    const bool suppressed = std::any_of(own.kept.begin(), own.kept.end(), [&](int64_t better) {
      return iou(object(i).box, object(better).box, options.borders) > options.iou_threshold;
    });
    if (suppressed) continue;
    own.kept.push_back(i);
    kept.push_back(i);
  }
  return kept;
}

}  // namespace octet::vision
