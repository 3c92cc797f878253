#include "vision/mask.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/error.h"

namespace octet::vision {
namespace {

// Joins what follows one another.
class RunWriter {
 public:
  void add(bool inside, size_t length) {
    if (length == 0) return;
    if (counts_.empty() && inside) counts_.push_back(0);
    if (counts_.size() % 2 == (inside ? 1u : 0u))
      counts_.push_back(static_cast<uint32_t>(length));
    else
      counts_.back() += static_cast<uint32_t>(length);
  }
  std::vector<uint32_t> take() { return std::move(counts_); }

 private:
  std::vector<uint32_t> counts_;
};

// Calls use(inside a, inside b, length) for the pieces that lie in one run of each.
template <typename Use>
void walk(const Mask& a, const Mask& b, const Use& use) {
  OCTET_CHECK(a.height() == b.height() && a.width() == b.width(), a.height(), " x ", a.width(), " and ", b.height(),
              " x ", b.width());
  const std::span<const uint32_t> as = a.counts(), bs = b.counts();
  size_t i = 0, j = 0;
  uint32_t left_a = as[0], left_b = bs[0];
  while (i < as.size() && j < bs.size()) {
    const uint32_t length = std::min(left_a, left_b);
    use(i % 2 == 1, j % 2 == 1, length);
    left_a -= length, left_b -= length;
    if (left_a == 0 && ++i < as.size()) left_a = as[i];
    if (left_b == 0 && ++j < bs.size()) left_b = bs[j];
  }
}

// Calls use(first place, length) for the runs of the object.
template <typename Use>
void for_each_run(const Mask& mask, const Use& use) {
  size_t at = 0;
  for (size_t i = 0; i < mask.counts().size(); ++i) {
    const size_t length = mask.counts()[i];
    if (i % 2 == 1) use(at, length);
    at += length;
  }
}

}  // namespace

size_t Mask::checked_size(int height, int width) {
  require(height > 0 && width > 0 && int64_t{height} * width <= kMaxPixels, "a mask of ", height, " x ", width,
          " pixels (height x width); expected positive sides and at most ", kMaxPixels, " pixels");
  return static_cast<size_t>(height) * static_cast<size_t>(width);
}

Mask::Mask(int height, int width, std::span<const uint32_t> counts) : height_(height), width_(width) {
  const size_t size = checked_size(height, width);
  RunWriter runs;
  size_t sum = 0;
  for (size_t i = 0; i < counts.size() && sum <= size; ++i) {
    sum += counts[i];
    runs.add(i % 2 == 1, counts[i]);
  }
  require(sum == size, "the runs of a mask of ", height, " x ", width, " pixels have ", sum > size ? "more than " : "",
          std::min(sum, size), " pixels, expected ", size);
  counts_ = runs.take();
}

Mask mask_of_pixels(std::span<const uint8_t> pixels, int height, int width) {
  OCTET_CHECK(pixels.size() == Mask::checked_size(height, width), pixels.size(), " pixels of ", height, " x ", width);
  RunWriter runs;
  for (size_t x = 0; x < static_cast<size_t>(width); ++x)
    for (size_t at = x; at < pixels.size(); at += static_cast<size_t>(width)) runs.add(pixels[at] != 0, 1);
  return {height, width, runs.take()};
}

std::vector<uint8_t> pixels(const Mask& mask) {
  const auto height = static_cast<size_t>(mask.height()), width = static_cast<size_t>(mask.width());
  std::vector<uint8_t> out(height * width, 0);
  for_each_run(mask, [&](size_t first, size_t length) {
    for (size_t at = first; at < first + length; ++at) out[at % height * width + at / height] = 1;
  });
  return out;
}

int64_t area(const Mask& mask) {
  int64_t sum = 0;
  for_each_run(mask, [&](size_t, size_t length) { sum += static_cast<int64_t>(length); });
  return sum;
}

Box bounds(const Mask& mask) {
  const auto height = static_cast<size_t>(mask.height());
  size_t x0 = static_cast<size_t>(mask.width()), y0 = height, x1 = 0, y1 = 0;
  for_each_run(mask, [&](size_t first, size_t length) {
    const size_t last = first + length - 1;
    const bool one_column = first / height == last / height;
    x0 = std::min(x0, first / height), x1 = std::max(x1, last / height + 1);
    y0 = std::min(y0, one_column ? first % height : 0), y1 = std::max(y1, one_column ? last % height + 1 : height);
  });
  if (x1 == 0) return {};
  return {static_cast<float>(x0), static_cast<float>(y0), static_cast<float>(x1), static_cast<float>(y1)};
}

double iou(const Mask& a, const Mask& b, bool b_is_crowd) {
  int64_t common = 0, all = 0;
  walk(a, b, [&](bool in_a, bool in_b, int64_t length) {
    common += in_a && in_b ? length : 0;
    all += in_a || (in_b && !b_is_crowd) ? length : 0;
  });
  return all > 0 ? static_cast<double>(common) / static_cast<double>(all) : 0;
}

Mask united(const Mask& a, const Mask& b) {
  RunWriter runs;
  walk(a, b, [&](bool in_a, bool in_b, size_t length) { runs.add(in_a || in_b, length); });
  return {a.height(), a.width(), runs.take()};
}

Mask gathered(const Mask& mask, std::span<const int> rows, std::span<const int> columns) {
  const auto height = static_cast<size_t>(mask.height());
  std::vector<uint8_t> from(height * static_cast<size_t>(mask.width()), 0);  // column after column
  std::vector<bool> empty(static_cast<size_t>(mask.width()), true);
  for_each_run(mask, [&](size_t first, size_t length) {
    std::fill_n(from.begin() + static_cast<ptrdiff_t>(first), length, uint8_t{1});
    for (size_t x = first / height; x <= (first + length - 1) / height; ++x) empty[x] = false;
  });
  for (const int y : rows) OCTET_CHECK(y >= -1 && y < mask.height(), "row ", y, " of ", mask.height());
  RunWriter runs;
  for (const int x : columns) {
    OCTET_CHECK(x >= -1 && x < mask.width(), "column ", x, " of ", mask.width());
    if (x < 0 || empty[static_cast<size_t>(x)]) {
      runs.add(false, rows.size());
      continue;
    }
    const uint8_t* column = from.data() + static_cast<size_t>(x) * height;
    for (const int y : rows) runs.add(y >= 0 && column[y] != 0, 1);
  }
  return {static_cast<int>(rows.size()), static_cast<int>(columns.size()), runs.take()};
}

}  // namespace octet::vision
