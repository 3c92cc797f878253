// Boxes into pictures, for people.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "data/image.h"
#include "vision/box.h"

namespace octet::data {

// Distinguishable also for people who see fewer colors (Okabe and Ito 2008).
enum class Paint { kOrange, kSkyBlue, kGreen, kYellow, kBlue, kVermilion, kPurple };
inline constexpr int kPaints = 7;

// A frame around each object, with the name of its class and the score, where that is a number; in the color that
// `paint` has for the class, or else one color after the other. Boxes are in pixels of `image`, which becomes RGB.
void draw_objects(
    Image& image, std::span<const vision::Object> objects, const std::function<std::string(int label)>& class_name,
    const std::function<Paint(int label)>& paint = [](int label) { return static_cast<Paint>(label % kPaints); });

}  // namespace octet::data
