// How detectors write a box as four numbers to be learned, relative to an anchor or a point. All are in pixels, or all
// in shares of the image: the codes are the same.
#pragma once
#include <array>
#include <limits>

#include "vision/box.h"

namespace octet::vision {

using BoxCode = std::array<float, 4>;

// ln(1000 / 16): no object is more than 62.5 times as long as its anchor (torchvision, Detectron2).
inline constexpr float kMaxLogSize = 4.135166556742356f;
inline constexpr float kUnlimited = std::numeric_limits<float>::infinity();

// Center and logarithm of the size: x, y, width, height (R-CNN, Girshick et al. 2014; Faster R-CNN, SSD, RetinaNet).
//   ((cx - anchor cx) / anchor w / variance 0, ..., ln(w / anchor w) / variance 2, ...)
struct CenterSizeCoder {
  BoxCode variances = {1, 1, 1, 1};  // SSD: 0.1, 0.1, 0.2, 0.2
  float max_log_size = kMaxLogSize;  // decode takes no ln(w / anchor w) for more; kUnlimited: TAO's SSD, RetinaNet
  // kInclusive: TAO's Faster R-CNN; widths are those of the last pixels, x0 + w / 2 the center.
  Borders borders = Borders::kExclusive;

  // As torchvision and TAO's two-stage detectors say it: the code is multiplied by `weights`, e.g. 10, 10, 5, 5.
  static CenterSizeCoder of_weights(const BoxCode& weights);

  // Box and anchor must have a width and a height.
  BoxCode encode(const Box& box, const Box& anchor) const;
  Box decode(const BoxCode& code, const Box& anchor) const;
};

// Distance of two anchors of the same shape, beside and below each other: the size of a cell of the feature map.
struct CellSize {
  float x = 1, y = 1;
};

// The sigmoid of x, y says where in the cell the center lies (YOLOv3, Redmon and Farhadi 2018), the exponential of
// width, height how large the box is in units of the anchor. The anchor is a prior in the middle of its cell, as
// make_anchors (anchors.h) with an offset of 0.5 has it.
struct YoloCoder {
  // The sigmoid is drawn out around 0.5 to reach the cell's borders: s sigmoid(x) - (s - 1) / 2 (YOLOv4, Bochkovskiy et
  // al. 2020: 1.05 to 1.2; TAO: 1 + *_grid_xy_extend). 1: YOLOv3.
  float xy_scale = 1;
  float max_log_size = kUnlimited;  // of decode; TAO's YOLOv4: 8
  float max_ratio = 100;            // encode takes sizes as 1 / max_ratio to max_ratio anchors, as TAO's YOLOv3

  // What is to be learned: x, y of the center in the cell, 0 to 1 inside it (compare with the drawn-out sigmoid), and
  // ln(w / anchor w), ln(h / anchor h). The anchor must have a width and a height.
  BoxCode encode(const Box& box, const Box& anchor, const CellSize& cell) const;
  // Of what the network gives, before the sigmoid.
  Box decode(const BoxCode& logits, const Box& anchor, const CellSize& cell) const;
};

// Distances of a point inside the box to its left, top, right and bottom border, in units of `scale` (FCOS, Tian et
// al. 2019: the stride of the level; or a number of pixels).
struct DistanceCoder {
  float scale = 1;

  // Negative distances: the point lies outside.
  BoxCode encode(const Box& box, float x, float y) const {
    return {(x - box.x0) / scale, (y - box.y0) / scale, (box.x1 - x) / scale, (box.y1 - y) / scale};
  }
  Box decode(const BoxCode& code, float x, float y) const {
    return {x - code[0] * scale, y - code[1] * scale, x + code[2] * scale, y + code[3] * scale};
  }
};

}  // namespace octet::vision
