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

}  // namespace

void draw_objects(Image& image, std::span<const vision::Object> objects,
                  const std::function<std::string(int)>& class_name, const std::function<Paint(int)>& paint) {
  make_rgb(image);
  cv::Mat pixels(image.height, image.width, CV_8UC3, image.pixels.data());
  const double size = std::clamp(std::min(image.width, image.height) / 640.0, 0.35, 2.0);
  const int thickness = std::max(1, static_cast<int>(std::lround(2 * size)));
  for (const vision::Object& object : objects) {
    const auto& c = kColors[static_cast<size_t>(paint(object.label))];
    const cv::Scalar color(c[0], c[1], c[2]);
    const vision::Box box =
        vision::clipped(object.box, static_cast<float>(image.width), static_cast<float>(image.height));
    const cv::Point first(static_cast<int>(box.x0), static_cast<int>(box.y0));
    const cv::Point last(static_cast<int>(std::ceil(box.x1)) - 1, static_cast<int>(std::ceil(box.y1)) - 1);
    cv::rectangle(pixels, first, last, color, thickness);
    char score[32] = "";
    if (!std::isnan(object.score)) std::snprintf(score, sizeof score, " %.2f", object.score);
    const std::string text = class_name(object.label) + score;
    int below = 0;
    const cv::Size extent = cv::getTextSize(text, cv::FONT_HERSHEY_SIMPLEX, size, thickness, &below);
    const int base = std::max(first.y - 2, extent.height + 1);
    cv::rectangle(pixels, {first.x, base - extent.height - 1}, {first.x + extent.width, base + below / 2}, color,
                  cv::FILLED);
    cv::putText(pixels, text, {first.x, base}, cv::FONT_HERSHEY_SIMPLEX, size, cv::Scalar(0, 0, 0), 1, cv::LINE_AA);
  }
}

}  // namespace octet::data
