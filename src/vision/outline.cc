#include "vision/outline.h"

#include <array>
#include <cstddef>

namespace octet::vision {
namespace {

// Directions of borders; one more is a turn to the right.
constexpr std::array<int, 4> kRight = {1, 0, -1, 0}, kDown = {0, 1, 0, -1};

// The borders between pixels that are the object's and those that are not, with the object on their right.
class PixelBorders {
 public:
  explicit PixelBorders(const Mask& mask) : width_(mask.width()), height_(mask.height()) {
    from_.resize((static_cast<size_t>(width_) + 1) * (static_cast<size_t>(height_) + 1));
    const std::vector<uint8_t> values = pixels(mask);
    const auto is_set = [&](int x, int y) {
      return x >= 0 && x < width_ && y >= 0 && y < height_ &&
             values[static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)] != 0;
    };
    for (int y = 0; y < height_; ++y)
      for (int x = 0; x < width_; ++x) {
        if (!is_set(x, y)) continue;
        if (!is_set(x, y - 1)) at(x, y) |= 1;
        if (!is_set(x + 1, y)) at(x + 1, y) |= 2;
        if (!is_set(x, y + 1)) at(x + 1, y + 1) |= 4;
        if (!is_set(x - 1, y)) at(x, y + 1) |= 8;
      }
  }

  int width() const { return width_; }
  int height() const { return height_; }
  bool begins(int x, int y, int direction) { return (at(x, y) >> direction & 1) != 0; }

  // The ring that begins to the right at (x, y), which is taken out. Where parts touch at a corner it turns right, and
  // so stays with its own.
  Outline take_ring(const int first_x, const int first_y) {
    Outline out;
    int x = first_x, y = first_y, direction = 0, before = -1;
    while (true) {
      if (direction != before) out.insert(out.end(), {x, y});
      at(x, y) &= static_cast<uint8_t>(~(1 << direction));
      x += kRight[static_cast<size_t>(direction)];
      y += kDown[static_cast<size_t>(direction)];
      before = direction;
      for (const int turn : {1, 0, 3}) {
        direction = (before + turn) % 4;
        if (x == first_x && y == first_y && direction == 0) return out;
        if (begins(x, y, direction)) break;
      }
    }
  }

 private:
  uint8_t& at(int x, int y) {
    return from_[static_cast<size_t>(y) * (static_cast<size_t>(width_) + 1) + static_cast<size_t>(x)];
  }

  int width_, height_;
  std::vector<uint8_t> from_;  // of each corner of a pixel: a bit for each direction in which a border leaves it
};

}  // namespace

std::optional<std::vector<Outline>> outlines(const Mask& mask) {
  PixelBorders borders(mask);
  std::vector<Outline> out;
  for (int y = 0; y < borders.height(); ++y)
    for (int x = 0; x < borders.width(); ++x) {
      // What is met first is an upper left corner. The border of a part leaves it to the right, that of a hole down.
      if (borders.begins(x, y, 0)) out.push_back(borders.take_ring(x, y));
      if (borders.begins(x, y, 1)) return std::nullopt;
    }
  return out;
}

}  // namespace octet::vision
