// Axis-parallel boxes and the objects that have them: what datasets tell, detectors find and metrics compare. Their
// masks are in mask.h.
//
// Coordinates are pixels of the image at hand as real numbers: x0, y0, x1, y1 are borders, not the last pixels, so a
// box over the whole of a 640 x 480 image is {0, 0, 640, 480}.
#pragma once
#include <algorithm>
#include <memory>
#include <string>

namespace octet::vision {

struct Box {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;

  float width() const { return x1 - x0; }
  float height() const { return y1 - y0; }
  bool operator==(const Box&) const = default;
};

// kInclusive reads x1, y1 as the last pixels, as PASCAL VOC's development kit does: one pixel is added
// to every width and height.
enum class Borders { kExclusive, kInclusive };

// Width times height; 0 for a box that is turned inside out.
inline float area(const Box& box, Borders borders = Borders::kExclusive) {
  const float extra = borders == Borders::kInclusive ? 1.0f : 0.0f;
  return std::max(box.width() + extra, 0.0f) * std::max(box.height() + extra, 0.0f);
}

inline Box intersection(const Box& a, const Box& b) {
  return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}

// Intersection over union, 0 .. 1; 0 where both are empty.
inline float iou(const Box& a, const Box& b, Borders borders = Borders::kExclusive) {
  const float common = area(intersection(a, b), borders);
  const float together = area(a, borders) + area(b, borders) - common;
  return together > 0 ? common / together : 0.0f;
}

// The part of a box that lies in an image; empty (of no area) where none does.
inline Box clipped(const Box& box, float width, float height) {
  return {std::clamp(box.x0, 0.0f, width), std::clamp(box.y0, 0.0f, height), std::clamp(box.x1, 0.0f, width),
          std::clamp(box.y1, 0.0f, height)};
}

class Mask;  // mask.h

// One thing in an image.
struct Object {
  Box box;
  int label = 0;    // class, from 0
  float score = 1;  // of a detection: higher is surer, not necessarily a probability
  // Of a truth: finding it counts neither for nor against (VOC's `difficult`, KITTI's occlusion).
  bool difficult = false;
  // Of a truth: many things that nobody told apart (COCO's `iscrowd`), which are difficult, too.
  bool crowd = false;
  std::shared_ptr<const Mask> mask = nullptr;  // of the whole image that the box is in; null: none is known
  // Of a truth: what its file calls it, before classes are mapped; null: nothing is known.
  std::shared_ptr<const std::string> source_class = nullptr;
};

}  // namespace octet::vision
