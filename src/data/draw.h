// Boxes into pictures, for people.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "data/image.h"
#include "vision/box.h"

namespace octet::data {

// A frame around each object, in the color of its class, with the name of the class and the score. Boxes are in pixels
// of `image`, which becomes RGB.
void draw_objects(Image& image, std::span<const vision::Object> objects,
                  const std::function<std::string(int label)>& class_name);

}  // namespace octet::data
