// For coco_masks.py: reads a case a line (height, width, run-length text of a mask, polygons each with the number of
// its coordinates) and prints the texts of the polygons' mask and of the union with the other one, both areas, the
// borders of the polygons' mask, IoU and IoU with the other as a crowd.
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "vision/polygon.h"
#include "vision/rle_text.h"

int main() {
  using namespace octet::vision;
  std::cout << std::setprecision(17);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    int height = 0, width = 0;
    size_t count = 0;
    std::string text;
    in >> height >> width >> text >> count;
    std::vector<Polygon> polygons(count);
    for (Polygon& polygon : polygons) {
      in >> count;
      polygon.resize(count);
      for (double& v : polygon) in >> v;
    }
    const Mask a = mask_of_polygons(polygons, height, width), b = parse_rle(text, height, width);
    const Box box = bounds(a);
    std::cout << rle_text(a) << ' ' << rle_text(united(a, b)) << ' ' << area(a) << ' ' << area(b) << ' ' << box.x0
              << ' ' << box.y0 << ' ' << box.x1 << ' ' << box.y1 << ' ' << iou(a, b) << ' ' << iou(a, b, true) << '\n';
  }
}
