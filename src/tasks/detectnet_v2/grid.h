// The grid of a DetectNet_v2 head ("GridBox"): every `stride` pixels a cell says for each class how much an object
// covers it, and where that object's borders lie.
//
// Tensors of an image are dense: coverage [classes][rows][columns], boxes [classes * 4][rows][columns] with left, top,
// right, bottom of class 0, then of class 1 ... A distance d in pixels from the point of a cell to a border is written
// as d / kBoxScale; the point of cell (row, column) is (column * stride + kBoxOffset, row * stride + kBoxOffset).
#pragma once
#include <cstdint>

namespace octet::tasks::detectnet_v2 {

inline constexpr float kBoxScale = 35.0f;  // TAO's objective_set.bbox.scale
inline constexpr float kBoxOffset = 0.5f;  // and .offset

struct Grid {
  int classes = 1, rows = 0, columns = 0;
  int stride = 16;  // pixels

  int64_t cells() const { return static_cast<int64_t>(rows) * columns; }
  int64_t coverage_size() const { return classes * cells(); }
  int64_t box_size() const { return 4 * coverage_size(); }
  int width() const { return columns * stride; }
  int height() const { return rows * stride; }
  // Where [channel][row][column] lies.
  int64_t at(int64_t channel, int row, int column) const {
    return channel * cells() + static_cast<int64_t>(row) * columns + column;
  }
};

}  // namespace octet::tasks::detectnet_v2
