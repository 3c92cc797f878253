// PASCAL VOC's annotations (Everingham et al. 2010): an XML file for each image.
#pragma once
#include <string>
#include <string_view>

#include "data/objects/annotated_set.h"

namespace octet::data {

// An <annotation>: <size>, and for each <object> <name>, <difficult>, <bndbox>. VOC counts pixels from 1 and names the
// last one, so (xmin, ymin, xmax, ymax) becomes {xmin - 1, ymin - 1, xmax, ymax}. Throws DecodeError (image.h) with the
// line and what is wrong there. Lines are the places.
AnnotationFile parse_voc(std::string_view xml);

// The opposite, for an image of three channels. Boxes are rounded outwards to whole pixels.
std::string write_voc(const AnnotationFile& annotation, const std::string& image_name);

// JPEGImages/NAME.jpg (or another image file of that name) with Annotations/NAME.xml; with DatasetOptions::split the
// images that ImageSets/Main/SPLIT.txt lists; or, with DatasetOptions::labels, images and annotations in any two
// folders.
AnnotatedSet read_voc(const DatasetOptions& options);

}  // namespace octet::data
