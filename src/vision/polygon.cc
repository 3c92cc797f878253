#include "vision/polygon.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/error.h"

namespace octet::vision {
namespace {

// The border is drawn on a grid of kFine points a pixel, a step at a time along the longer axis of each edge. Between
// the points kFine * x + kBefore and the next one it goes through the middle of pixel column x.
constexpr int kFine = 5, kBefore = 2;

struct Point {
  int x, y;  // of the fine grid
};

// Rounds as C's conversion does: towards 0, after adding a half.
int rounded(double v) {
  return static_cast<int>(v + 0.5);
}

Point corner(const Polygon& polygon, size_t i) {
  return {rounded(kFine * polygon[2 * i]), rounded(kFine * polygon[2 * i + 1])};
}

// The first pixel of a column whose middle is below a point of the fine grid; `height` where none is.
int row_below(int fine_y, int height) {
  return static_cast<int>(std::ceil(std::clamp((fine_y + 0.5) / kFine - 0.5, 0.0, static_cast<double>(height))));
}

// Columns of the image that are crossed between two points of the fine grid.
std::pair<int, int> columns_between(int from, int to, int width) {
  const int first = (std::max(from - kBefore, 0) + kFine - 1) / kFine;
  const int last = to - 1 - kBefore < 0 ? -1 : (to - 1 - kBefore) / kFine;
  return {first, std::min(last, width - 1)};
}

// Calls use(column, fine y) where an edge goes through the middle of a column; y is the upper of the two points.
template <typename Use>
void for_each_crossing(Point from, Point to, int width, const Use& use) {
  const int dx = std::abs(to.x - from.x), dy = std::abs(to.y - from.y);
  if (dx == 0) return;
  if (dx >= dy) {
    if (from.x > to.x) std::swap(from, to);
    const double slope = static_cast<double>(to.y - from.y) / dx;
    const auto y_at = [&](int x) { return rounded(from.y + slope * (x - from.x)); };
    const auto [first, last] = columns_between(from.x, to.x, width);
    for (int column = first; column <= last; ++column) {
      const int x = kFine * column + kBefore;
      use(column, std::min(y_at(x), y_at(x + 1)));
    }
    return;
  }
  if (from.y > to.y) std::swap(from, to);
  const double slope = static_cast<double>(to.x - from.x) / dy;
  const auto x_at = [&](int step) { return rounded(from.x + slope * step); };
  const bool rises = to.x > from.x;
  const auto [first, last] = columns_between(std::min(from.x, to.x), std::max(from.x, to.x), width);
  for (int column = first; column <= last; ++column) {
    const int x = kFine * column + kBefore;
    int before = 0, after = dy;  // steps on this and on that side of it
    while (after - before > 1) {
      const int middle = before + (after - before) / 2;
      ((x_at(middle) > x) == rises ? after : before) = middle;
    }
    use(column, from.y + before);
  }
}

void check(const Polygon& polygon) {
  require(polygon.size() % 2 == 0, "a polygon has ", polygon.size(), " numbers, expected pairs of x and y");
  require(polygon.size() >= 6, "a polygon has ", polygon.size() / 2, " corners, expected at least 3");
  for (const double v : polygon)
    require(std::abs(v) <= kMaxPolygonCoordinate, "a polygon has the coordinate ", v, ", expected at most ",
            kMaxPolygonCoordinate, " pixels either way");
}

Mask mask_of(const Polygon& polygon, int height, int width) {
  check(polygon);
  const size_t size = Mask::checked_size(height, width);
  const size_t corners = polygon.size() / 2;
  std::vector<uint32_t> places;  // where the inside begins or ends
  for (size_t i = 0; i < corners; ++i) {
    for_each_crossing(corner(polygon, i), corner(polygon, (i + 1) % corners), width, [&](int column, int fine_y) {
      require(std::cmp_less(places.size(), kMaxPolygonCrossings), "a polygon crosses the columns of an image of ",
              height, " x ", width, " pixels more than ", kMaxPolygonCrossings, " times");
      places.push_back(static_cast<uint32_t>(column * height + row_below(fine_y, height)));
    });
  }
  std::sort(places.begin(), places.end());
  places.push_back(static_cast<uint32_t>(size));
  for (size_t i = places.size() - 1; i > 0; --i) places[i] -= places[i - 1];
  return {height, width, places};
}

}  // namespace

Mask mask_of_polygons(std::span<const Polygon> polygons, int height, int width) {
  require(!polygons.empty(), "a segmentation has no polygon");
  std::optional<Mask> whole;
  for (const Polygon& polygon : polygons) {
    const Mask part = mask_of(polygon, height, width);
    whole = whole ? united(*whole, part) : part;
  }
  return *std::move(whole);
}

}  // namespace octet::vision
