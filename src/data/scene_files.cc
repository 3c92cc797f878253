#include "data/scene_files.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "data/image_write.h"
#include "data/objects/voc.h"
#include "vision/outline.h"
#include "vision/rle_text.h"

namespace octet::data {
namespace fs = std::filesystem;

OCTET_ENUM_NAMES(SceneFormat, {SceneFormat::kVoc, "voc"}, {SceneFormat::kKitti, "kitti"}, {SceneFormat::kCoco, "coco"})

namespace {

using Json = nlohmann::ordered_json;

// "000042": sorts by number.
std::string scene_name(int64_t index) {
  const std::string digits = std::to_string(index);
  return std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
}

// Where the files of a split go.
struct Folders {
  fs::path images, annotations, instances, classes;
};

Folders folders_for(SceneFormat format, const fs::path& root, const std::string& split) {
  switch (format) {
    case SceneFormat::kVoc:
      return {root / "JPEGImages", root / "Annotations", root / "SegmentationObject", root / "SegmentationClass"};
    case SceneFormat::kKitti:
      return {root / split / "image_2", root / split / "label_2", root / split / "instance", root / split / "semantic"};
    case SceneFormat::kCoco:
      break;
  }
  return {root / split, root / "annotations", root / (split + "_instance"), root / (split + "_semantic")};
}

AnnotationFile annotation_of(const Scene& scene, const std::vector<std::string>& class_names) {
  AnnotationFile out{.width = scene.image.width, .height = scene.image.height, .objects = {}};
  for (const vision::Object& object : scene.objects)
    out.objects.push_back({.class_name = class_names.at(static_cast<size_t>(object.label)), .box = object.box});
  return out;
}

// Pixels of object i have the value that `value_of` gives it.
template <typename Value>
Image painted_masks(const Scene& scene, const Value& value_of) {
  Image out{scene.image.height, scene.image.width, 1, {}};
  out.pixels.resize(out.size());
  for (size_t i = 0; i < scene.objects.size(); ++i) {
    const std::vector<uint8_t> pixels = vision::pixels(*scene.objects[i].mask);
    const auto value = static_cast<uint8_t>(value_of(i));
    for (size_t p = 0; p < pixels.size(); ++p)
      if (pixels[p] != 0) out.pixels[p] = value;
  }
  return out;
}

int occlusion(float seen) {
  return seen >= 0.7f ? 0 : seen >= 0.4f ? 1 : 2;
}

// KITTI's labels; what is not known of an object has KITTI's values for that (-1, -10, -1000).
std::string kitti_labels(const Scene& scene, const std::vector<std::string>& class_names) {
  std::string out;
  for (size_t i = 0; i < scene.objects.size(); ++i) {
    const vision::Box& b = scene.objects[i].box;
    char fields[128];
    std::snprintf(fields, sizeof fields, " 0.00 %d -10 %.2f %.2f %.2f %.2f -1 -1 -1 -1000 -1000 -1000 -10\n",
                  occlusion(scene.seen[i]), b.x0, b.y0, b.x1, b.y1);
    out += class_names.at(static_cast<size_t>(scene.objects[i].label)) + fields;
  }
  return out;
}

// As in COCO's own files: polygons, and runs of pixels where the object has holes.
Json segmentation(const vision::Mask& mask) {
  if (const auto outlines = vision::outlines(mask)) return *outlines;
  return {{"size", {mask.height(), mask.width()}}, {"counts", vision::rle_text(mask)}};
}

// COCO's file, which grows by an image at a time.
class CocoFile {
 public:
  explicit CocoFile(const std::vector<std::string>& class_names) {
    for (const char* part : {"images", "annotations", "categories"}) json_[part] = Json::array();
    for (size_t i = 0; i < class_names.size(); ++i)
      json_["categories"].push_back({{"id", i + 1}, {"name", class_names[i]}, {"supercategory", ""}});
  }

  void add(int64_t index, const std::string& file, const Scene& scene) {
    json_["images"].push_back(
        {{"id", index}, {"file_name", file}, {"width", scene.image.width}, {"height", scene.image.height}});
    for (const vision::Object& object : scene.objects) {
      const vision::Box& b = object.box;
      json_["annotations"].push_back({{"id", ++annotations_},
                                      {"image_id", index},
                                      {"category_id", object.label + 1},
                                      {"bbox", {b.x0, b.y0, b.width(), b.height()}},
                                      {"area", vision::area(*object.mask)},
                                      {"iscrowd", 0},
                                      {"segmentation", segmentation(*object.mask)}});
    }
  }
  std::string text() const { return json_.dump() + "\n"; }

 private:
  Json json_;
  int64_t annotations_ = 0;
};

}  // namespace

void write_scenes(const Dataset& pictures, const SceneOptions& options, SceneFormat format,
                  const std::vector<std::pair<std::string, int64_t>>& splits, const fs::path& folder, int64_t first,
                  const std::function<void(int64_t)>& progress) {
  if (options.masks && (options.max_objects > 255 || pictures.class_names().size() > 255))
    fail_usage("masks as gray pictures have room for 255 objects and classes, and there may be ", options.max_objects,
               " objects of ", pictures.class_names().size(), " classes");
  SceneOptions making = options;
  making.masks = options.masks || format == SceneFormat::kCoco;
  const std::vector<std::string>& names = pictures.class_names();
  int64_t index = first;
  for (const auto& [split, count] : splits) {
    const Folders to = folders_for(format, folder, split);
    for (const fs::path& path : {to.images, to.annotations}) fs::create_directories(path);
    if (options.masks)
      for (const fs::path& path : {to.instances, to.classes}) fs::create_directories(path);
    std::string list;
    CocoFile coco(names);
    for (const int64_t end = index + count; index < end; ++index) {
      const Scene scene = make_scene(pictures, making, index);
      const std::string name = scene_name(index), file = name + ".png";
      write_png(to.images / file, scene.image);
      if (format == SceneFormat::kCoco)
        coco.add(index, file, scene);
      else if (format == SceneFormat::kKitti)
        write_file_atomically(to.annotations / (name + ".txt"), kitti_labels(scene, names));
      else
        write_file_atomically(to.annotations / (name + ".xml"), write_voc(annotation_of(scene, names), file));
      if (options.masks) {
        write_png(to.instances / file, painted_masks(scene, [](size_t i) { return i + 1; }));
        write_png(to.classes / file, painted_masks(scene, [&scene](size_t i) { return scene.objects[i].label + 1; }));
      }
      list += name + "\n";
      if (progress) progress(index + 1 - first);
    }
    if (format == SceneFormat::kCoco)
      write_file_atomically(to.annotations / ("instances_" + split + ".json"), coco.text());
    if (format == SceneFormat::kVoc) {
      fs::create_directories(folder / "ImageSets" / "Main");
      write_file_atomically(folder / "ImageSets" / "Main" / (split + ".txt"), list);
    }
  }
}

}  // namespace octet::data
