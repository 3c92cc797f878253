#include "data/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "data/stroke_font.h"

namespace octet::data {
namespace {

using InkColor = std::array<uint8_t, 3>;  // red, green, blue

// Of each Paint.
constexpr std::array<InkColor, kPaints> kColors = {
    {{230, 159, 0}, {86, 180, 233}, {0, 158, 115}, {240, 228, 66}, {0, 114, 178}, {213, 94, 0}, {204, 121, 167}}};

void make_rgb(Image& image) {
  if (image.channels == 3) return;
  std::vector<uint8_t> rgb;
  rgb.reserve(image.pixels.size() * 3);
  for (uint8_t value : image.pixels) rgb.insert(rgb.end(), 3, value);
  image.pixels = std::move(rgb);
  image.channels = 3;
}

// Pixels x0 <= x < x1, y0 <= y < y1; what lies outside the picture is left out.
struct Rect {
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

void fill(Image& image, const Rect& rect, const InkColor& color) {
  const int x0 = std::max(0, rect.x0), x1 = std::min(image.width, rect.x1);
  for (int y = std::max(0, rect.y0); y < std::min(image.height, rect.y1); ++y)
    for (int x = x0; x < x1; ++x) std::copy(color.begin(), color.end(), image.row(y) + 3 * x);
}

// Its middle runs along the edge of the box.
void draw_frame(Image& image, const Rect& box, int thickness, const InkColor& color) {
  const int outer = thickness / 2, inner = thickness - outer;
  const Rect around{box.x0 - outer, box.y0 - outer, box.x1 + outer, box.y1 + outer};
  fill(image, {around.x0, around.y0, around.x1, box.y0 + inner}, color);
  fill(image, {around.x0, box.y1 - inner, around.x1, around.y1}, color);
  fill(image, {around.x0, around.y0, box.x0 + inner, around.y1}, color);
  fill(image, {box.x1 - inner, around.y0, around.x1, around.y1}, color);
}

// Black or white, whichever stands out from it (relative luminance as ITU-R BT.709 has it).
InkColor ink_on(const InkColor& color) {
  const double luminance = 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2];
  return luminance > 110 ? InkColor{0, 0, 0} : InkColor{255, 255, 255};
}

struct InkPoint {
  float x = 0, y = 0;
};

float distance(const InkPoint& p, const InkPoint& a, const InkPoint& b) {
  const float dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const float t = length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0f, 1.0f) : 0.0f;
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

// A line of a round pen, in the part of each pixel that it covers.
void draw_stroke(Image& image, const InkPoint& a, const InkPoint& b, float width, const InkColor& ink) {
  const float reach = width / 2 + 1;
  const auto first = [&](float at) { return std::max(0, static_cast<int>(std::floor(at - reach))); };
  const auto last = [&](float at, int size) { return std::min(size - 1, static_cast<int>(std::ceil(at + reach))); };
  for (int y = first(std::min(a.y, b.y)); y <= last(std::max(a.y, b.y), image.height); ++y) {
    for (int x = first(std::min(a.x, b.x)); x <= last(std::max(a.x, b.x), image.width); ++x) {
      const InkPoint center{static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f};
      const float part = std::clamp(width / 2 + 0.5f - distance(center, a, b), 0.0f, 1.0f);
      uint8_t* pixel = image.row(y) + 3 * x;
      for (size_t c = 0; c < 3; ++c)
        pixel[c] = static_cast<uint8_t>(std::lround(pixel[c] + part * (static_cast<float>(ink[c]) - pixel[c])));
    }
  }
}

// A character that is no ASCII, of several bytes, is one glyph.
std::vector<Glyph> glyphs_of(const std::string& text) {
  std::vector<Glyph> glyphs;
  for (char c : text)
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) glyphs.push_back(glyph_of(c));
  return glyphs;
}

// The text on a filled ground, above the box, or in it where there is no room above; always within the picture. `size`
// is in pixels for a unit of the font.
void draw_label(Image& image, const std::string& text, const Rect& box, const InkColor& color, double size) {
  const std::vector<Glyph> glyphs = glyphs_of(text);
  int units = 0;
  for (const Glyph& glyph : glyphs) units += glyph.advance;
  const int margin = std::max(2, static_cast<int>(std::lround(4 * size)));
  const int width = static_cast<int>(std::ceil(units * size)) + 2 * margin;
  const int ascent = static_cast<int>(std::ceil(kCapitalHeight * size)) + margin;
  const int height = ascent + static_cast<int>(std::ceil(kDescent * size)) + margin / 2;
  const int left = std::max(0, std::min(box.x0, image.width - width));
  const int top = box.y0 >= height ? box.y0 - height : std::min(box.y0, std::max(0, image.height - height));
  fill(image, {left, top, left + width, top + height}, color);
  const auto scale = static_cast<float>(size);
  const float pen = std::max(1.0f, 1.5f * scale), base = static_cast<float>(top + ascent);
  auto x = static_cast<float>(left + margin);
  for (const Glyph& glyph : glyphs) {
    const auto place = [&](const StrokePoint& p) {
      return InkPoint{x + scale * static_cast<float>(p.x), base + scale * static_cast<float>(p.y)};
    };
    for (const std::vector<StrokePoint>& stroke : glyph.strokes)
      for (size_t i = 1; i < stroke.size(); ++i)
        draw_stroke(image, place(stroke[i - 1]), place(stroke[i]), pen, ink_on(color));
    x += scale * static_cast<float>(glyph.advance);
  }
}

}  // namespace

void draw_objects(Image& image, std::span<const vision::Object> objects,
                  const std::function<std::string(int)>& class_name, const std::function<Paint(int)>& paint) {
  make_rgb(image);
  const double size = std::clamp(std::min(image.width, image.height) / 900.0, 0.4, 2.0);
  const int thickness = std::max(1, static_cast<int>(std::lround(2.5 * size)));
  // All frames first, so that none crosses a label; the surest objects last, on top.
  std::vector<const vision::Object*> order;
  for (const vision::Object& object : objects) order.push_back(&object);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return std::isless(a->score, b->score); });
  std::vector<Rect> frames;
  const auto color_of = [&](const vision::Object& object) { return kColors[static_cast<size_t>(paint(object.label))]; };
  for (const vision::Object* object : order) {
    const vision::Box box =
        vision::clipped(object->box, static_cast<float>(image.width), static_cast<float>(image.height));
    frames.push_back({static_cast<int>(box.x0), static_cast<int>(box.y0), static_cast<int>(std::ceil(box.x1)),
                      static_cast<int>(std::ceil(box.y1))});
    draw_frame(image, frames.back(), thickness, color_of(*object));
  }
  for (size_t i = 0; i < order.size(); ++i) {
    char score[32] = "";
    if (!std::isnan(order[i]->score)) std::snprintf(score, sizeof score, " %.2f", order[i]->score);
    draw_label(image, class_name(order[i]->label) + score, frames[i], color_of(*order[i]), size);
  }
}

}  // namespace octet::data
