// The grid of a DetectNet_v2 head ("GridBox"): every `stride` pixels a cell says for each class how much an object
// covers it, and where that object's borders lie.
//
// Tensors of an image are dense: coverage [classes][rows][columns], boxes [classes * 4][rows][columns] with left, top,
// right, bottom of class 0, then of class 1 ...: kBoxCoder's distances from the point of a cell, which for cell (row,
// column) is (point(column), point(row)).
#pragma once
#include <cstdint>

#include "vision/box_coder.h"

namespace octet::tasks::detectnet_v2 {

inline constexpr vision::DistanceCoder kBoxCoder{.scale = 35.0f};  // pixels: TAO's objective_set.bbox.scale
inline constexpr float kBoxOffset = 0.5f;                          // and .offset

struct Grid {
  int classes = 1, rows = 0, columns = 0;
  int stride = 16;  // pixels

  int64_t cells() const { return static_cast<int64_t>(rows) * columns; }
  int64_t coverage_size() const { return classes * cells(); }
  int64_t box_size() const { return 4 * coverage_size(); }
  int width() const { return columns * stride; }
  int height() const { return rows * stride; }
  float point(int row_or_column) const { return static_cast<float>(row_or_column * stride) + kBoxOffset; }
  // Where [channel][row][column] lies.
  int64_t at(int64_t channel, int row, int column) const {
    return channel * cells() + static_cast<int64_t>(row) * columns + column;
  }
};

}  // namespace octet::tasks::detectnet_v2
