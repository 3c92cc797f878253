// The files in which detection datasets tell what is in one image: PASCAL VOC's XML and KITTI's text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "vision/box.h"

namespace octet::data {

// One object as its file tells it; class names become labels when the dataset knows its classes.
struct AnnotatedObject {
  std::string class_name;
  vision::Box box;         // pixels, as vision/box.h says
  bool difficult = false;  // VOC's `difficult`; KITTI: occlusion other than 0
  bool operator==(const AnnotatedObject&) const = default;
};

struct AnnotationFile {
  int width = 0, height = 0;  // of the image, pixels; 0 where the file does not say
  std::vector<AnnotatedObject> objects;
  int empty_boxes = 0;  // objects left out because their box has no area
};

// An <annotation> of VOC (Everingham et al.): <size>, and for each <object> <name>, <difficult>, <bndbox>. VOC counts
// pixels from 1 and names the last one, so (xmin, ymin, xmax, ymax) becomes {xmin - 1, ymin - 1, xmax, ymax}. Throws
// DecodeError (image.h) with what is wrong and where.
AnnotationFile parse_voc(std::string_view xml);

// KITTI's labels (Geiger, Lenz, Urtasun 2012): a line for each object with 15 fields (16 with a score, which is not
// read): class, truncation, occlusion, angle, x0, y0, x1, y1, seven of the object in space. Throws DecodeError with the
// number of the line.
AnnotationFile parse_kitti(std::string_view text);

// The opposite of parse_voc, for an image of `width` x `height` pixels and three channels. Boxes are rounded outwards
// to whole pixels.
std::string write_voc(const AnnotationFile& annotation, const std::string& image_name);

}  // namespace octet::data
