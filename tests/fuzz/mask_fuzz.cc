// Any bytes as a run-length text, or as corners of polygons: refused with a UserError, or a mask whose pixels, area,
// bounds and texts agree.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "byte_source.h"
#include "vision/polygon.h"
#include "vision/rle_text.h"

namespace {

using namespace octet::vision;

void expect(bool ok) {
  if (!ok) std::abort();
}

void check(const Mask& mask) {
  const std::vector<uint8_t> picture = pixels(mask);
  expect(mask_of_pixels(picture, mask.height(), mask.width()) == mask);
  expect(parse_rle(rle_text(mask), mask.height(), mask.width()) == mask);
  int64_t set = 0;
  const Box box = bounds(mask);
  for (size_t i = 0; i < picture.size(); ++i) {
    if (!picture[i]) continue;
    ++set;
    const auto x = static_cast<float>(i % static_cast<size_t>(mask.width()));
    const auto y = static_cast<float>(i / static_cast<size_t>(mask.width()));
    expect(x >= box.x0 && x < box.x1 && y >= box.y0 && y < box.y1);
  }
  expect(area(mask) == set);
  expect(iou(mask, mask) == (set > 0 ? 1 : 0) && united(mask, mask) == mask);
}

std::vector<Polygon> polygons_of(octet::testing::ByteSource& bytes) {
  std::vector<Polygon> polygons(1 + static_cast<size_t>(bytes.between(0, 2)));
  for (Polygon& polygon : polygons) {
    polygon.resize(static_cast<size_t>(bytes.between(5, 20)));
    for (double& v : polygon) {
      const int64_t whole = bytes.between(-64, 191);
      v = bytes.chance(3)   ? std::bit_cast<double>(bytes.pick(octet::testing::kBorderNumbers))
          : bytes.chance(3) ? static_cast<double>(bytes.pick(octet::testing::kBorderNumbers))
                            : static_cast<double>(whole) + static_cast<double>(bytes.byte()) / 256;
    }
  }
  return polygons;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  octet::testing::ByteSource bytes({data, size});
  const bool text = bytes.chance(50);
  const int height = static_cast<int>(bytes.number(bytes.between(1, 100)));
  const int width = static_cast<int>(bytes.number(bytes.between(1, 100)));
  if (int64_t{height} * width > 1 << 16 && int64_t{height} * width <= Mask::kMaxPixels) return 0;  // slow, nothing new
  try {
    if (text)
      check(parse_rle(std::string_view(reinterpret_cast<const char*>(data), size).substr(bytes.used()), height, width));
    else
      check(mask_of_polygons(polygons_of(bytes), height, width));
  } catch (const octet::UserError&) {
  }
  return 0;
}
