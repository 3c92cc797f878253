// KITTI's labels (Geiger, Lenz, Urtasun 2012): a text file for each image, a line for each object.
#pragma once
#include <string>
#include <string_view>

#include "data/objects/annotated_set.h"

namespace octet::data {

// A line has 15 fields (16 with a score, which is not read): class, truncation, occlusion, angle, x0, y0, x1, y1, and
// seven of the object in space. Throws DecodeError (image.h) with the number of the line. Lines are the places.
AnnotationFile parse_kitti(std::string_view text);

// image_2/NAME.png (or images/, or another image file) with label_2/NAME.txt (or labels/) in the folder, or in its
// sub-folder DatasetOptions::split; or, with DatasetOptions::labels, images and labels in any two folders. DontCare
// marks what nobody looked at.
AnnotatedSet read_kitti(const DatasetOptions& options);

}  // namespace octet::data
