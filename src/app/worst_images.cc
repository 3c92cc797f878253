#include "app/worst_images.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/log.h"
#include "data/draw.h"
#include "data/image_write.h"
#include "data/resize.h"

namespace octet::app {
namespace {

using nlohmann::ordered_json;

constexpr size_t kPictures = 8;
constexpr int kLongestSide = 640;  // pixels: the page stays of a size that can be mailed

data::Paint paint_of(const std::string& outcome) {
  if (outcome == "right") return data::Paint::kGreen;
  return outcome == "missed" ? data::Paint::kBlue : data::Paint::kVermilion;
}

// One mark an object; its label is its place in `marks`.
std::vector<vision::Object> objects_of(const ordered_json& marks, double scale) {
  std::vector<vision::Object> out;
  for (const ordered_json& mark : marks) {
    const auto side = [&](size_t i) { return static_cast<float>(scale * mark.at("box").at(i).get<double>()); };
    out.push_back({.box = {side(0), side(1), side(2), side(3)},
                   .label = static_cast<int>(out.size()),
                   .score = mark.at("outcome") == "missed" ? std::numeric_limits<float>::quiet_NaN()
                                                           : mark.at("score").get<float>()});
  }
  return out;
}

std::string draw(data::Image image, const ordered_json& marks) {
  const double scale = std::min(1.0, static_cast<double>(kLongestSide) / std::max(image.height, image.width));
  if (scale < 1)
    image = data::resize_bilinear(image, std::max(1, static_cast<int>(std::lround(scale * image.height))),
                                  std::max(1, static_cast<int>(std::lround(scale * image.width))));
  const auto mark = [&](int label) -> const ordered_json& { return marks.at(static_cast<size_t>(label)); };
  data::draw_objects(
      image, objects_of(marks, scale),
      [&](int label) {
        const std::string outcome = mark(label).at("outcome");
        return (outcome == "right" ? "" : outcome + " ") + mark(label).at("class").get<std::string>();
      },
      [&](int label) { return paint_of(mark(label).at("outcome")); });
  return data::encode_png(image);
}

}  // namespace

std::vector<report::Picture> worst_pictures(const ordered_json& evaluation, const data::Dataset& images) {
  std::vector<report::Picture> out;
  if (!evaluation.contains("worst")) return out;
  for (const ordered_json& remark : evaluation["worst"]) {
    const int64_t index = remark.at("image");
    const std::string name = remark.at("name");
    if (out.size() == kPictures) break;
    if (index < 0 || index >= images.size() || images.name(index) != name) {
      log_warning("the image ", name, " of the results is not among the images of the spec; it is not drawn");
      continue;
    }
    try {
      out.push_back({.title = remark.at("text").get<std::string>() + ": " + name,
                     .media_type = "image/png",
                     .bytes = draw(images.get(index).image, remark.at("objects"))});
    } catch (const data::CorruptSample& e) {
      log_warning("the image ", e.name(), " is not drawn: ", e.reason());
    }
  }
  return out;
}

}  // namespace octet::app
