// COCO's instances (Lin et al. 2014): one JSON file with the images, categories and annotations of a whole set.
#pragma once
#include <string_view>

#include "data/objects/annotated_set.h"

namespace octet::data {

// One image and its objects. Places are the ids of annotations.
struct CocoImage {
  std::string file_name;
  AnnotationFile annotation;
};
struct CocoFile {
  std::vector<CocoImage> images;        // in the order of the file; also those without objects
  std::vector<std::string> categories;  // names, sorted (bytes)
  Findings findings;                    // annotations whose image is not in the list
};

// `images` (id, file_name, width, height), `categories` (id, name) and `annotations` (image_id, category_id, bbox as x,
// y, width, height; iscrowd), in any order; other keys are not looked at. With `masks`, `segmentation`, too: polygons,
// runs, or runs as text. The annotations are read one at a time, so a file of some hundred megabytes takes little more
// memory than its objects. Throws DecodeError (image.h) with the byte, or with the annotation or image by its id.
CocoFile parse_coco(std::string_view json, bool masks);

// The images of a folder with a JSON file: DatasetOptions::labels, or, with a split, the folder's
// annotations/instances_SPLIT.json and images in its sub-folder SPLIT; else its _annotations.coco.json.
AnnotatedSet read_coco(const DatasetOptions& options);

}  // namespace octet::data
