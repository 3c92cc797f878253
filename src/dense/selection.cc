// Operators that choose some of many: the largest, those that are not zero, boxes that no better one covers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "dense/operators.h"

namespace octet::dense {
namespace {

template <typename T>
void top_of_line(const T* from, int64_t inner, int64_t length, int64_t k, bool largest, T* values, int64_t* places) {
  std::vector<int64_t> order(static_cast<size_t>(length));
  std::iota(order.begin(), order.end(), 0);
  // Equal ones in their order, as other runtimes do. NaN counts as less than all numbers.
  const auto before = [&](int64_t a, int64_t b) {
    const T x = from[a * inner], y = from[b * inner];
    const bool x_is_nan = x != x, y_is_nan = y != y;
    if (x_is_nan != y_is_nan) return largest ? y_is_nan : x_is_nan;
    if (!x_is_nan && x != y) return largest ? x > y : x < y;
    return a < b;
  };
  std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
  for (int64_t i = 0; i < k; ++i) {
    values[i * inner] = from[order[static_cast<size_t>(i)] * inner];
    places[i * inner] = order[static_cast<size_t>(i)];
  }
}

Tensors top_k(const Call& call) {
  const Tensor& x = call.input(0);
  const size_t axis = normal_axis(call.int_attribute("axis", -1), x.rank());
  const int64_t k = call.one_int(1), length = x.shape()[axis];
  require(k >= 0 && k <= length, "the ", k, " largest are wanted of ", length);
  const bool largest = call.int_attribute("largest", 1) != 0;
  Shape shape = x.shape();
  shape[axis] = k;
  Tensor values = call.memory().make(x.type(), shape), places = call.memory().make<int64_t>(shape);
  const int64_t inner = count_of(shape, axis + 1, shape.size()), outer = count_of(shape, 0, axis);
  dispatch(x.type(), [&]<typename T>() {
    for (int64_t i = 0; i < outer * inner; ++i) {
      const int64_t o = i / inner, rest = i % inner, to = o * k * inner + rest;
      top_of_line<T>(x.values<T>().data() + o * length * inner + rest, inner, length, k, largest,
                     values.mutable_values<T>().data() + to, places.mutable_values<int64_t>().data() + to);
    }
  });
  return {values, places};
}

Tensors non_zero(const Call& call) {
  const Tensor& x = call.input(0);
  const Shape steps = steps_of(x.shape());
  std::vector<int64_t> found;
  dispatch(x.type(), [&]<typename T>() {
    const auto from = x.values<T>();
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i] != T{0}) found.push_back(static_cast<int64_t>(i));
  });
  const auto count = static_cast<int64_t>(found.size());
  Tensor out = call.memory().make<int64_t>({static_cast<int64_t>(x.rank()), count});
  const auto to = out.mutable_values<int64_t>();
  for (size_t d = 0; d < x.rank(); ++d)
    for (size_t i = 0; i < found.size(); ++i) to[d * found.size() + i] = found[i] / steps[d] % x.shape()[d];
  return {out};
}

struct Corners {
  float low_y, low_x, high_y, high_x, area;
};

Corners corners_of(const float* box, bool by_center) {
  float y0, x0, y1, x1;
  if (by_center) {  // x, y, width, height
    x0 = box[0] - box[2] / 2, x1 = box[0] + box[2] / 2, y0 = box[1] - box[3] / 2, y1 = box[1] + box[3] / 2;
  } else {  // y, x, y, x of any two opposite corners
    y0 = box[0], x0 = box[1], y1 = box[2], x1 = box[3];
  }
  Corners c{std::min(y0, y1), std::min(x0, x1), std::max(y0, y1), std::max(x0, x1), 0};
  c.area = (c.high_y - c.low_y) * (c.high_x - c.low_x);
  return c;
}

bool overlap(const Corners& a, const Corners& b, float threshold) {
  const float height = std::min(a.high_y, b.high_y) - std::max(a.low_y, b.low_y),
              width = std::min(a.high_x, b.high_x) - std::max(a.low_x, b.low_x);
  if (!(height > 0) || !(width > 0) || !(a.area > 0) || !(b.area > 0)) return false;
  const float shared = height * width;
  return shared / (a.area + b.area - shared) > threshold;
}

// The kept boxes by columns of the plane, so that a box is compared with those alone that it may overlap. Detectors
// move the boxes of each class to a place of their own, where they meet no others.
class Columns {
 public:
  explicit Columns(const std::vector<Corners>& all) : cells_(kCells) {
    low_ = std::numeric_limits<float>::infinity();
    float high = -low_;
    for (const Corners& c : all)
      if (std::isfinite(c.low_x) && std::isfinite(c.high_x))
        low_ = std::min(low_, c.low_x), high = std::max(high, c.high_x);
    per_cell_ = high > low_ ? static_cast<double>(kCells) / (static_cast<double>(high) - low_) : 0;
  }
  void keep(const Corners& c) {
    for (size_t i = first(c); i <= last(c); ++i) cells_[i].push_back(c);
  }
  bool cover(const Corners& c, float threshold) const {
    for (size_t i = first(c); i <= last(c); ++i)
      for (const Corners& kept : cells_[i])
        if (overlap(c, kept, threshold)) return true;
    return false;
  }

 private:
  static constexpr size_t kCells = 512;
  // Numbers that are none of the plane lie everywhere.
  size_t cell(float x, size_t otherwise) const {
    const double at = (static_cast<double>(x) - low_) * per_cell_;
    if (!std::isfinite(at)) return otherwise;
    return static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(kCells - 1)));
  }
  size_t first(const Corners& c) const { return cell(c.low_x, 0); }
  size_t last(const Corners& c) const { return cell(c.high_x, kCells - 1); }

  std::vector<std::vector<Corners>> cells_;
  double per_cell_ = 0;
  float low_ = 0;
};

Tensors non_maximum_suppression(const Call& call) {
  const Tensor &boxes = call.input(0), &scores = call.input(1);
  require(boxes.type() == Type::kFloat && scores.type() == Type::kFloat && boxes.rank() == 3 && scores.rank() == 3 &&
              boxes.shape()[2] == 4 && boxes.shape()[0] == scores.shape()[0] && boxes.shape()[1] == scores.shape()[2],
          "boxes ", shape_text(boxes.shape()), " and scores ", shape_text(scores.shape()), " do not fit each other");
  const int64_t most = call.optional(2) ? call.one_int(2) : 0;
  const float threshold = call.one_float(3, 0);
  const bool has_least = call.optional(4) != nullptr;
  const float least = call.one_float(4, 0);
  const bool by_center = call.int_attribute("center_point_box", 0) != 0;
  const int64_t images = scores.shape()[0], classes = scores.shape()[1], count = scores.shape()[2];
  std::vector<int64_t> found;
  for (int64_t image = 0; image < images; ++image) {
    std::vector<Corners> corners;
    for (int64_t i = 0; i < count; ++i)
      corners.push_back(corners_of(boxes.values<float>().data() + (image * count + i) * 4, by_center));
    for (int64_t c = 0; c < classes; ++c) {
      const float* score = scores.values<float>().data() + (image * classes + c) * count;
      std::vector<int64_t> order;
      Columns columns(corners);
      int64_t kept = 0;
      for (int64_t i = 0; i < count; ++i)
        if (!has_least || score[i] > least) order.push_back(i);
      std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        const float x = score[a], y = score[b];
        const bool x_is_nan = x != x, y_is_nan = y != y;
        if (x_is_nan != y_is_nan) return y_is_nan;
        return !x_is_nan && x != y ? x > y : a < b;
      });
      for (const int64_t i : order) {
        if (kept >= most) break;
        const Corners& box = corners[static_cast<size_t>(i)];
        if (columns.cover(box, threshold)) continue;
        columns.keep(box);
        ++kept;
        found.insert(found.end(), {image, c, i});
      }
    }
  }
  return {call.memory().of<int64_t>({static_cast<int64_t>(found.size()) / 3, 3}, found)};
}

}  // namespace

std::vector<Operator> selection_operators() {
  return {{"TopK", top_k, 2, 2, 2, Typing::kTopK, {"axis", "largest", "sorted"}},
          {"NonZero", non_zero, 1, 1, 1, Typing::kInt64},
          {"NonMaxSuppression", non_maximum_suppression, 2, 5, 1, Typing::kInt64, {"center_point_box"}}};
}

}  // namespace octet::dense
