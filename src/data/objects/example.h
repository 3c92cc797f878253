// An image with its objects as a tf.train.Example, with the keys of TAO's DetectNet_v2 records.
#pragma once
#include <string>
#include <string_view>

#include "data/objects/annotated_set.h"

namespace octet::data {

struct Example {
  std::string id;  // of the image, a path below the folder of the images, without ending: frame/id
  AnnotationFile annotation;
};

// Keys: frame/id, frame/width and frame/height; target/object_class and, one value for each object,
// target/coordinates_x1, _y1, _x2 and _y2; where they are there, also target/truncation, occlusion (other than 0:
// difficult), observation_angle, world_bbox_h, _w, _l, _x, _y, _z and _rot_y, and target/is_crowd, which is Octet's
// own. Others are not looked at. The numbers of objects, from 1, are their places. Throws DecodeError (image.h):
// damaged protobuf, a key that is missing, of another type or of another length than target/object_class; and for
// records of SSD, RetinaNet and DSSD, which have the image inside (frame/encoded).
Example parse_example(std::string_view bytes);

// The opposite. A difficult object that is not occluded is written as partly occluded.
std::string write_example(const Example& example);

}  // namespace octet::data
