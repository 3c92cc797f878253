#include "data/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <opencv2/imgproc.hpp>

namespace octet::data {
namespace {

// Of each Paint: red, green, blue.
constexpr std::array<std::array<int, 3>, kPaints> kColors = {
    {{230, 159, 0}, {86, 180, 233}, {0, 158, 115}, {240, 228, 66}, {0, 114, 178}, {213, 94, 0}, {204, 121, 167}}};

void make_rgb(Image& image) {
  if (image.channels == 3) return;
  std::vector<uint8_t> rgb;
  rgb.reserve(image.pixels.size() * 3);
  for (uint8_t value : image.pixels) rgb.insert(rgb.end(), 3, value);
  image.pixels = std::move(rgb);
  image.channels = 3;
}

// Black or white, whichever stands out from it (relative luminance as ITU-R BT.709 has it).
cv::Scalar ink_on(const cv::Scalar& color) {
  const double luminance = 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2];
  return luminance > 110 ? cv::Scalar(0, 0, 0) : cv::Scalar(255, 255, 255);
}

// The text on a filled ground, above the box, or in it where there is no room above; always within the picture.
void draw_label(cv::Mat& pixels, const std::string& text, const cv::Rect& box, const cv::Scalar& color, double size) {
  constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
  const int weight = std::max(1, static_cast<int>(std::lround(1.5 * size)));
  const int margin = std::max(2, static_cast<int>(std::lround(4 * size)));
  int below = 0;
  const cv::Size extent = cv::getTextSize(text, kFont, size, weight, &below);
  const int width = extent.width + 2 * margin, height = extent.height + below + margin;
  const int left = std::max(0, std::min(box.x, pixels.cols - width));
  const int top = box.y >= height ? box.y - height : std::min(box.y, std::max(0, pixels.rows - height));
  cv::rectangle(pixels, cv::Rect(left, top, width, height), color, cv::FILLED);
  cv::putText(pixels, text, {left + margin, top + extent.height + margin / 2}, kFont, size, ink_on(color), weight,
              cv::LINE_AA);
}

}  // namespace

void draw_objects(Image& image, std::span<const vision::Object> objects,
                  const std::function<std::string(int)>& class_name, const std::function<Paint(int)>& paint) {
  make_rgb(image);
  cv::Mat pixels(image.height, image.width, CV_8UC3, image.pixels.data());
  const double size = std::clamp(std::min(image.width, image.height) / 900.0, 0.4, 2.0);
  const int thickness = std::max(1, static_cast<int>(std::lround(2.5 * size)));
  // All frames first, so that none crosses a label; the surest objects last, on top.
  std::vector<const vision::Object*> order;
  for (const vision::Object& object : objects) order.push_back(&object);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return std::isless(a->score, b->score); });
  std::vector<cv::Rect> frames;
  const auto color_of = [&](const vision::Object& object) {
    const auto& c = kColors[static_cast<size_t>(paint(object.label))];
    return cv::Scalar(c[0], c[1], c[2]);
  };
  for (const vision::Object* object : order) {
    const vision::Box box =
        vision::clipped(object->box, static_cast<float>(image.width), static_cast<float>(image.height));
    const cv::Point first(static_cast<int>(box.x0), static_cast<int>(box.y0));
    const cv::Point last(static_cast<int>(std::ceil(box.x1)), static_cast<int>(std::ceil(box.y1)));
    frames.emplace_back(first, last);
    cv::rectangle(pixels, frames.back(), color_of(*object), thickness);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    char score[32] = "";
    if (!std::isnan(order[i]->score)) std::snprintf(score, sizeof score, " %.2f", order[i]->score);
    draw_label(pixels, class_name(order[i]->label) + score, frames[i], color_of(*order[i]), size);
  }
}

}  // namespace octet::data
