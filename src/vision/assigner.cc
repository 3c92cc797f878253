#include "vision/assigner.h"

#include <cmath>
#include <cstddef>

#include "base/error.h"

namespace octet::vision {
namespace {

// What an anchor overlaps most, or a truth.
struct Best {
  int index = kBackground;
  float iou = 0;

  void see(int other, float other_iou) {
    if (other_iou > iou) index = other, iou = other_iou;
  }
};

// IoUs of anchors with the truths that can be learned; the others only keep anchors from being background.
class Overlaps {
 public:
  Overlaps(std::span<const Box> anchors, std::span<const Object> truths, const IouThresholds& thresholds)
      : anchors_(anchors), truths_(truths), thresholds_(thresholds) {
    OCTET_CHECK(thresholds.negative <= thresholds.positive, thresholds.negative, " > ", thresholds.positive);
  }

  size_t anchors() const { return anchors_.size(); }
  int truths() const { return static_cast<int>(truths_.size()); }
  bool difficult(int truth) const { return truths_[static_cast<size_t>(truth)].difficult; }
  float of(size_t anchor, int truth) const {
    return iou(anchors_[anchor], truths_[static_cast<size_t>(truth)].box, thresholds_.borders);
  }

  std::vector<Best> best_truths() const {
    std::vector<Best> best(anchors());
    for (size_t a = 0; a < anchors(); ++a)
      for (int t = 0; t < truths(); ++t)
        if (!difficult(t)) best[a].see(t, of(a, t));
    return best;
  }

  std::vector<int> by_thresholds(std::span<const Best> best) const {
    std::vector<int> assigned(anchors(), kBackground);
    for (size_t a = 0; a < anchors(); ++a) {
      if (best[a].index >= 0 && best[a].iou >= thresholds_.positive)
        assigned[a] = best[a].index;
      else if (best[a].iou >= thresholds_.negative || shows_difficult(anchors_[a]))
        assigned[a] = kIgnore;
    }
    return assigned;
  }

 private:
  bool shows_difficult(const Box& anchor) const {
    const float whole = area(anchor, thresholds_.borders);
    return whole > 0 && std::any_of(truths_.begin(), truths_.end(), [&](const Object& truth) {
             return truth.difficult &&
                    area(intersection(anchor, truth.box), thresholds_.borders) >= thresholds_.difficult_share * whole;
           });
  }

  std::span<const Box> anchors_;
  std::span<const Object> truths_;
  const IouThresholds& thresholds_;
};

int cell_of(float center, float step, int cells) {
  return std::clamp(static_cast<int>(std::floor(std::clamp(center / step, 0.0f, static_cast<float>(cells)))), 0,
                    cells - 1);
}

float shape_iou_of(const Box& box, const AnchorShape& shape) {
  return iou({0, 0, box.width(), box.height()}, {0, 0, shape.width, shape.height});
}

// Calls use(anchor, IoU of the shapes) for those in the cell of the box's center.
template <typename Use>
void for_each_shape(std::span<const AnchorLevel> levels, const Box& box, const Use& use) {
  size_t first = 0;  // anchor of the level
  for (const AnchorLevel& level : levels) {
    if (level.rows == 0 || level.columns == 0) continue;
    const int row = cell_of(0.5f * (box.y0 + box.y1), level.step_y, level.rows);
    const int column = cell_of(0.5f * (box.x0 + box.x1), level.step_x, level.columns);
    const size_t cell = static_cast<size_t>(row) * static_cast<size_t>(level.columns) + static_cast<size_t>(column);
    for (size_t k = 0; k < level.shapes.size(); ++k)
      use(first + cell * level.shapes.size() + k, shape_iou_of(box, level.shapes[k]));
    first += level.anchors();
  }
}

}  // namespace

std::vector<int> assign_by_iou(std::span<const Box> anchors, std::span<const Object> truths,
                               const IouThresholds& thresholds, bool low_quality) {
  const Overlaps overlaps(anchors, truths, thresholds);
  const std::vector<Best> best = overlaps.best_truths();
  std::vector<int> assigned = overlaps.by_thresholds(best);
  if (!low_quality) return assigned;
  for (int t = 0; t < overlaps.truths(); ++t) {
    if (overlaps.difficult(t)) continue;
    std::vector<float> ious(anchors.size());
    for (size_t a = 0; a < anchors.size(); ++a) ious[a] = overlaps.of(a, t);
    const float most = ious.empty() ? 0 : *std::max_element(ious.begin(), ious.end());
    for (size_t a = 0; a < anchors.size(); ++a)
      if (most > 0 && ious[a] == most) assigned[a] = best[a].index;
  }
  return assigned;
}

std::vector<int> assign_bipartite(std::span<const Box> anchors, std::span<const Object> truths,
                                  const IouThresholds& thresholds) {
  const Overlaps overlaps(anchors, truths, thresholds);
  std::vector<int> assigned = overlaps.by_thresholds(overlaps.best_truths());
  std::vector<bool> taken(anchors.size(), false);
  const auto best_free = [&](int truth) {
    Best best;
    for (size_t a = 0; a < anchors.size(); ++a)
      if (!taken[a]) best.see(static_cast<int>(a), overlaps.of(a, truth));
    return best;
  };
  std::vector<Best> best(truths.size());  // an anchor of each truth; kBackground: it has its own, or none is left
  for (size_t t = 0; t < truths.size(); ++t)
    if (!truths[t].difficult) best[t] = best_free(static_cast<int>(t));
  while (true) {
    Best next;
    for (size_t t = 0; t < truths.size(); ++t) next.see(static_cast<int>(t), best[t].iou);
    if (next.index < 0) return assigned;
    const int anchor = best[static_cast<size_t>(next.index)].index;
    assigned[static_cast<size_t>(anchor)] = next.index;
    taken[static_cast<size_t>(anchor)] = true;
    best[static_cast<size_t>(next.index)] = {};
    for (size_t t = 0; t < truths.size(); ++t)
      if (best[t].index == anchor) best[t] = best_free(static_cast<int>(t));
  }
}

std::vector<int> assign_by_shape(std::span<const AnchorLevel> levels, std::span<const Object> truths, float shape_iou) {
  size_t count = 0;
  for (const AnchorLevel& level : levels) count += level.anchors();
  std::vector<int> assigned(count, kBackground);
  std::vector<float> held(count, 0);  // how well the truth suits the anchor; 1: it is the truth's best
  // Those that none may have come first, so that the others take their anchors from them.
  for (const bool difficult : {true, false}) {
    for (size_t t = 0; t < truths.size(); ++t) {
      if (truths[t].difficult != difficult) continue;
      Best best;
      for_each_shape(levels, truths[t].box, [&](size_t anchor, float iou) {
        best.see(static_cast<int>(anchor), iou);
        if (iou <= shape_iou || iou <= held[anchor]) return;
        assigned[anchor] = difficult ? kIgnore : static_cast<int>(t);
        if (!difficult) held[anchor] = iou;
      });
      if (best.index < 0) continue;
      assigned[static_cast<size_t>(best.index)] = difficult ? kIgnore : static_cast<int>(t);
      if (!difficult) held[static_cast<size_t>(best.index)] = 1;
    }
  }
  return assigned;
}

}  // namespace octet::vision
