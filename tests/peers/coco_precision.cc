// For coco_precision.py: reads result sets and prints COCO's twelve figures of each, of boxes and of masks. A set is a
// line "set CLASSES IMAGES", and for each image "OBJECTS DETECTIONS HEIGHT WIDTH", an object a line (label, crowd, the
// box's x0 y0 x1 y1, run-length text of the mask) and a detection a line (label, score, box, mask).
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "metrics/coco.h"
#include "vision/rle_text.h"

namespace {

using octet::vision::Object;

Object read_object(int height, int width, bool detection) {
  Object object;
  double second = 0;
  std::string runs;
  std::cin >> object.label >> second >> object.box.x0 >> object.box.y0 >> object.box.x1 >> object.box.y1 >> runs;
  if (detection)
    object.score = static_cast<float>(second);
  else
    object.crowd = object.difficult = second != 0;
  object.mask = std::make_shared<octet::vision::Mask>(octet::vision::parse_rle(runs, height, width));
  return object;
}

// Boxes are measured as such, without the masks.
std::vector<Object> without_masks(std::vector<Object> objects) {
  for (Object& object : objects) object.mask = nullptr;
  return objects;
}

}  // namespace

int main() {
  using namespace octet::metrics;
  std::string word;
  int classes = 0, images = 0;
  std::cout << std::setprecision(17);
  while (std::cin >> word >> classes >> images) {
    CocoAccumulator boxes({.classes = classes}), masks({.classes = classes, .region = Region::kMask});
    CocoAccumulator first({.classes = classes});  // of the first half; boxes has the second, and they are merged
    for (int image = 0; image < images; ++image) {
      int object_count = 0, detection_count = 0, height = 0, width = 0;
      std::cin >> object_count >> detection_count >> height >> width;
      std::vector<Object> objects, detections;
      for (int i = 0; i < object_count; ++i) objects.push_back(read_object(height, width, false));
      for (int i = 0; i < detection_count; ++i) detections.push_back(read_object(height, width, true));
      masks.add(detections, objects);
      (image < images / 2 ? first : boxes).add(without_masks(detections), without_masks(objects));
    }
    first.merge(boxes);
    for (const CocoAccumulator* each : {&first, &masks})
      for (const CocoFigure& figure : coco_figures(each->result())) std::cout << figure.value << ' ';
    std::cout << '\n';
  }
}
