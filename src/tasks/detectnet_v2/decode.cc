#include "tasks/detectnet_v2/decode.h"

#include <algorithm>

#include "base/error.h"

namespace octet::tasks::detectnet_v2 {

using vision::Box;
using vision::Object;

std::vector<Object> propose(std::span<const float> coverage, std::span<const float> boxes, const Grid& grid,
                            const PostprocessingOptions& options) {
  OCTET_CHECK(static_cast<int64_t>(coverage.size()) == grid.coverage_size() &&
                  static_cast<int64_t>(boxes.size()) == grid.box_size(),
              coverage.size(), " and ", boxes.size());
  const float width = static_cast<float>(grid.width()), height = static_cast<float>(grid.height());
  std::vector<Object> out;
  for (int label = 0; label < grid.classes; ++label) {
    const auto threshold = static_cast<float>(options.clustering.of(label).coverage_threshold);
    for (int row = 0; row < grid.rows; ++row) {
      for (int column = 0; column < grid.columns; ++column) {
        const float score = coverage[static_cast<size_t>(grid.at(label, row, column))];
        if (!(score > threshold)) continue;
        const auto code = [&](int i) { return boxes[static_cast<size_t>(grid.at(4 * label + i, row, column))]; };
        const float x = grid.point(column), y = grid.point(row);
        Box box = vision::clipped(kBoxCoder.decode({code(0), code(1), code(2), code(3)}, x, y), width, height);
        box.x1 = std::max(box.x0, box.x1), box.y1 = std::max(box.y0, box.y1);
        out.push_back({.box = box, .label = label, .score = score});
      }
    }
  }
  return out;
}

}  // namespace octet::tasks::detectnet_v2
