// A data set of objects as its files tell it: what every format is read into, before anything is judged, and what is
// written as another format. dataset_of() makes of it what networks learn from.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/findings.h"
#include "vision/box.h"
#include "vision/mask.h"

namespace octet::data {

// What KITTI's labels say beside class and box (Geiger, Lenz, Urtasun 2012); zeros where another format does not.
struct KittiFields {
  float truncation = 0;  // share of the object that is beyond the image, 0 .. 1
  int occlusion = 0;     // 0 visible, 1 partly, 2 largely hidden, 3 unknown
  float angle = 0;       // of observation, radians
  // Height, width, length in meters; x, y, z in meters; rotation around y in radians.
  std::array<float, 7> world = {};
  bool operator==(const KittiFields&) const = default;
};

struct AnnotatedObject {
  std::string class_name;
  vision::Box box;         // pixels, as vision/box.h says; as the file has it, also inside out or not finite
  bool difficult = false;  // VOC's `difficult`; KITTI: occlusion other than 0; a crowd
  bool crowd = false;      // COCO's `iscrowd`
  KittiFields kitti;
  std::shared_ptr<const vision::Mask> mask = nullptr;
  int64_t place = 0;  // in its file, for messages: AnnotatedSet::place says what it counts
  bool operator==(const AnnotatedObject&) const = default;
};

// One file of annotations for one image.
struct AnnotationFile {
  int width = 0, height = 0;  // of the image, pixels; 0 where the file does not say
  std::vector<AnnotatedObject> objects;
};

struct AnnotatedImage {
  std::filesystem::path path;  // of the image
  std::string name;            // below the folder of the data set, without ending: "image_2/000012"
  std::string source;          // the file that tells of it, for messages
  AnnotationFile annotation;
};

struct AnnotatedSet {
  std::vector<AnnotatedImage> images;
  std::vector<std::string> classes;  // where the format lists them: also those without objects
  const char* place = "line";        // what AnnotatedObject::place counts
  // Objects called DontCare, however spelled, mark what nobody looked at: they become Annotation::others.
  bool dont_care = false;
  uint64_t hash = 0;  // of names, annotations and sizes of the images
  Findings findings;
};

// "labels/3.txt, line 2 (car: 5, 5, 9, 9)"
std::string place_of(const AnnotatedSet& set, const AnnotatedImage& image, const AnnotatedObject& object);

// Leaves out what no network can learn from and counts it in `findings`: boxes that are not finite, without area or
// outside of their image, and images that cannot be read. The size of an image is that of its annotation, else that in
// the file's first bytes, turned as `exif_orientation` says. UserError where no image is left.
void drop_unusable(AnnotatedSet& set, bool exif_orientation, const std::string& where);

// The names of all classes in lower case, as TAO's converters write them.
void lower_classes(AnnotatedSet& set);

// What is left of drop_unusable() as a dataset. Classes are those that the set lists and the names that occur, sorted
// (bytes). UserError where there is no image or no object.
std::unique_ptr<Dataset> dataset_of(AnnotatedSet set, const DatasetOptions& options);

}  // namespace octet::data
