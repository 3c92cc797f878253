// Folders of images with a file of objects for each, as detection datasets have them. Classes are the names that occur,
// sorted (bytes); annotations are read when the dataset is opened, images when they are asked for. UserError naming
// file and line for an annotation that cannot be read, or an image that is missing.
#pragma once
#include <memory>

#include "data/dataset.h"

namespace octet::data {

// PASCAL VOC (annotation_file.h): JPEGImages/NAME.jpg (or another image file of that name) with Annotations/NAME.xml.
std::unique_ptr<Dataset> open_voc(const DatasetOptions& options);

// KITTI (annotation_file.h): image_2/NAME.png (or another) with label_2/NAME.txt. DontCare, which marks what nobody
// looked at, is no class and is left out.
std::unique_ptr<Dataset> open_kitti(const DatasetOptions& options);

}  // namespace octet::data
