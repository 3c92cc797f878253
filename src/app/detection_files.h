// Detections as files that other tools read: pictures, KITTI's label files, COCO's results.
#pragma once
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "vision/box.h"

namespace octet::app {

// A line an object with the 16 fields of KITTI's results: class, truncation, occlusion, angle, x0 y0 x1 y1 in pixels,
// size, place, rotation, score. What a box does not know has KITTI's values for that (-1, -10, -1000). Fields end at
// spaces, so those of a name become underscores.
std::string kitti_text(std::span<const vision::Object> objects, const std::vector<std::string>& class_names);

// What images and classes are called in results of COCO.
struct CocoIds {
  std::map<std::string, int64_t> images;      // by file name, as annotations have it; empty: numbered
  std::map<std::string, int64_t> categories;  // by name; empty: numbered from 1
};

// Of the bytes of a COCO annotation file; `name` stands for it in messages. UserError where images or categories are
// missing or not as COCO has them.
CocoIds parse_coco_ids(std::string_view text, const std::string& name);

// One name for each image, without ending: that of its file, below the sub-folder of its file where names repeat.
std::vector<std::filesystem::path> names_for_results(const data::Dataset& images);

struct DetectionOutputs {
  std::filesystem::path pictures;  // folder: a PNG each with the boxes drawn in; empty: none
  std::filesystem::path kitti;     // folder: a text each
  std::filesystem::path coco;      // file: all of them
  CocoIds ids;
  bool replace = false;  // KITTI's texts that are there already
};

// Writes what was asked for as the images come.
class DetectionFiles {
 public:
  // Makes the folders. `images` outlives it. UserError (exit 2) where a picture would replace one of the images, or a
  // text one that is there: KITTI's truth lies in texts of these names, too.
  DetectionFiles(DetectionOutputs outputs, std::vector<std::string> class_names, const data::Dataset& images);

  // `objects` in pixels of the image. In the picture those from `least_score` on. UserError where COCO's annotations
  // lack the image or a class.
  void add(int64_t index, std::span<const vision::Object> objects, double least_score);
  // Writes COCO's results.
  void finish() const;

 private:
  std::string class_name(int label) const;
  std::filesystem::path picture(size_t index) const { return outputs_.pictures / (names_[index].string() + ".png"); }
  std::filesystem::path text(size_t index) const { return outputs_.kitti / (names_[index].string() + ".txt"); }
  void check() const;
  void draw(int64_t index, std::span<const vision::Object> objects, double least_score) const;
  void add_coco(int64_t index, std::span<const vision::Object> objects);
  int64_t coco_image(int64_t index) const;
  int64_t coco_category(int label) const;

  DetectionOutputs outputs_;
  std::vector<std::string> class_names_;
  const data::Dataset& images_;
  std::vector<std::filesystem::path> names_;
  nlohmann::ordered_json coco_ = nlohmann::ordered_json::array();
};

}  // namespace octet::app
