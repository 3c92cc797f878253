#include "data/objects/annotated_set.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "data/file_dataset.h"
#include "data/image_file.h"

namespace octet::data {
namespace {

constexpr float kGreatest = 1e6f;  // pixels; more is no picture
constexpr float kBeyond = 1;       // pixels that a box may reach beyond its image without a word: rounding

bool finite(const vision::Box& box) {
  for (const float v : {box.x0, box.y0, box.x1, box.y1})
    if (!(std::abs(v) <= kGreatest)) return false;
  return true;
}

// What is wrong with a box, of an image of this size.
std::vector<Finding> fault(const vision::Box& box, float width, float height) {
  if (!finite(box)) return {Finding::kNotFinite};
  if (!(vision::area(box) > 0)) return {Finding::kInsideOut};
  if (!(vision::area(vision::clipped(box, width, height)) > 0)) return {Finding::kOutside};
  if (box.x0 < -kBeyond || box.y0 < -kBeyond || box.x1 > width + kBeyond || box.y1 > height + kBeyond)
    return {Finding::kBeyond};
  return {};
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool is_dont_care(const std::string& class_name) {
  return class_name.size() == 8 && lower_case(class_name) == "dontcare";
}

bool read_size(AnnotatedImage& image, bool exif_orientation, Findings& findings) {
  if (image.annotation.width > 0 && image.annotation.height > 0) return true;
  try {
    const ImageSize size = read_image_size(image.path, exif_orientation);
    image.annotation.width = size.width;
    image.annotation.height = size.height;
    return true;
  } catch (const CorruptSample& error) {
    findings.add(Finding::kUnreadableImage, error.what());
    return false;
  }
}

}  // namespace

std::string place_of(const AnnotatedSet& set, const AnnotatedImage& image, const AnnotatedObject& object) {
  const vision::Box& b = object.box;
  return str(image.source, ", ", set.place, ' ', object.place, " (", object.class_name, ": ", b.x0, ", ", b.y0, ", ",
             b.x1, ", ", b.y1, ')');
}

void drop_unusable(AnnotatedSet& set, bool exif_orientation, const std::string& where) {
  std::erase_if(set.images, [&](AnnotatedImage& image) { return !read_size(image, exif_orientation, set.findings); });
  if (set.images.empty()) fail(where, ": holds no image that can be used", set.findings.as_reasons());
  for (AnnotatedImage& image : set.images) {
    const auto width = static_cast<float>(image.annotation.width), height = static_cast<float>(image.annotation.height);
    std::erase_if(image.annotation.objects, [&](const AnnotatedObject& object) {
      if (set.dont_care && is_dont_care(object.class_name)) return false;
      const std::vector<Finding> found = fault(object.box, width, height);
      if (found.empty()) return false;
      set.findings.add(found[0], place_of(set, image, object));
      return found[0] != Finding::kBeyond;
    });
  }
}

void lower_classes(AnnotatedSet& set) {
  for (std::string& name : set.classes) name = lower_case(name);
  for (AnnotatedImage& image : set.images)
    for (AnnotatedObject& object : image.annotation.objects) object.class_name = lower_case(object.class_name);
}

std::unique_ptr<Dataset> dataset_of(AnnotatedSet set, const DatasetOptions& options) {
  const std::string where = options.path.string();
  drop_unusable(set, options.exif_orientation, where);
  if (options.lower_case_classes) lower_classes(set);
  const auto is_learned = [&set](const AnnotatedObject& object) {
    return !(set.dont_care && is_dont_care(object.class_name));
  };
  std::set<std::string> found(set.classes.begin(), set.classes.end());
  int64_t objects = 0;
  for (const AnnotatedImage& image : set.images)
    for (const AnnotatedObject& object : image.annotation.objects)
      if (is_learned(object)) {
        found.insert(object.class_name);
        ++objects;
      }
  if (objects == 0)
    fail(where, ": has no object in any of its ", set.images.size(), " annotations", set.findings.as_reasons());
  const std::vector<std::string> names(found.begin(), found.end());
  std::map<std::string, int> labels;
  for (size_t i = 0; i < names.size(); ++i) labels.emplace(names[i], static_cast<int>(i));
  std::map<std::string, std::shared_ptr<const std::string>> source_classes;
  const auto source_class = [&source_classes](const std::string& name) {
    std::shared_ptr<const std::string>& known = source_classes[name];
    if (!known) known = std::make_shared<const std::string>(name);
    return known;
  };
  std::vector<FileDataset::Entry> entries;
  for (AnnotatedImage& image : set.images) {
    FileDataset::Entry& entry = entries.emplace_back();
    entry.path = std::move(image.path);
    entry.truth.weight = static_cast<float>(options.source_weight);
    for (AnnotatedObject& object : image.annotation.objects) {
      const bool learned = is_learned(object);
      std::vector<vision::Object>& to = learned ? entry.truth.objects : entry.truth.others;
      to.push_back({.box = object.box,
                    .label = learned ? labels.at(object.class_name) : -1,
                    .difficult = object.difficult || object.crowd,
                    .crowd = object.crowd,
                    .mask = learned ? std::move(object.mask) : nullptr,
                    .source_class = source_class(object.class_name)});
    }
  }
  const DecodeOptions decode{.channels = options.channels == 1 ? 1 : 3, .exif_orientation = options.exif_orientation};
  return std::make_unique<FileDataset>(std::move(entries), names, set.hash, decode, std::move(set.findings));
}

}  // namespace octet::data
