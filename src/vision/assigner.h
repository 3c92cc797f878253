// Which anchor learns which object. Each function gives for every anchor the index of its truth, kBackground or
// kIgnore. Where two truths or two anchors suit equally well the one with the lower index is taken, so that results do
// not depend on the order of execution.
//
// A truth that is `difficult` (also a crowd of COCO) is nobody's: anchors that would be background but show it are
// ignored. To learn such objects as TAO's SSD and RetinaNet do, clear the flag first.
#pragma once
#include <span>
#include <vector>

#include "vision/anchors.h"
#include "vision/box.h"

namespace octet::vision {

inline constexpr int kBackground = -1;
inline constexpr int kIgnore = -2;

struct IouThresholds {
  float positive = 0.5f;  // an anchor whose best IoU is this or more learns that truth
  float negative = 0.5f;  // one whose best IoU is less is background; between the two it is ignored. At most `positive`
  // A background anchor of whose area this much lies in a difficult truth is ignored.
  float difficult_share = 0.5f;
  Borders borders = Borders::kExclusive;  // kInclusive: TAO's Faster R-CNN
};

// Each anchor to the truth that it overlaps most: torchvision's Matcher. With `low_quality`, an anchor than which none
// overlaps some truth more (all of them where several do it equally) learns its own best truth, however little that is:
// Faster R-CNN's and torchvision's RetinaNet's way to leave no object out. Other than in torchvision, an overlap of 0
// is no match, and where there are no truths all anchors are background.
std::vector<int> assign_by_iou(std::span<const Box> anchors, std::span<const Object> truths,
                               const IouThresholds& thresholds, bool low_quality = false);

// SSD (Liu et al. 2016, section 2.2) and TAO's RetinaNet: first the pair of anchor and truth with the greatest IoU of
// all, then the greatest of what is left, until every truth has an anchor of its own; then the other anchors by the
// thresholds. A truth that no free anchor overlaps gets none.
std::vector<int> assign_bipartite(std::span<const Box> anchors, std::span<const Object> truths,
                                  const IouThresholds& thresholds);

// YOLOv3 and v4: by shape alone, in the cell where the truth's center lies. `levels` are those that make_anchors takes,
// and the result has its order; centers beyond the last cell count to that cell.
//
// Truths come in their order. Each takes the anchor whose shape is most like its own (greatest IoU of the two around
// the same center) among those of all levels, also from a truth before it. Before that it takes the anchors whose shape
// overlaps its own by more than `shape_iou`, where nothing as good was there and none has its best (TAO's
// `box_matching_iou`; 1: YOLOv3, the best one alone).
std::vector<int> assign_by_shape(std::span<const AnchorLevel> levels, std::span<const Object> truths,
                                 float shape_iou = 1);

}  // namespace octet::vision
