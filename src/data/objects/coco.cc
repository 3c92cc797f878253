#include "data/objects/coco.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "data/image.h"
#include "data/image_file.h"
#include "vision/polygon.h"
#include "vision/rle_text.h"

namespace octet::data {
namespace fs = std::filesystem;
namespace {

using CocoJson = nlohmann::json;

// An annotation before it is known how large its image is.
struct CocoEntry {
  int64_t id = 0, image = 0, category = 0;
  vision::Box box;
  bool crowd = false;
  CocoJson segmentation;
};

std::string shown(const CocoJson& value) {
  const std::string text = value.dump(-1, ' ', false, CocoJson::error_handler_t::replace);
  return text.size() <= 40 ? text : text.substr(0, 40) + "...";
}

// A key of a JSON object that has to be there. `what`: "annotation 17".
const CocoJson& at(const CocoJson& object, const char* key, const std::string& what) {
  const auto found = object.find(key);
  if (found == object.end()) throw DecodeError(str(what, " has no '", key, "': ", shown(object)));
  return *found;
}

int64_t whole(const CocoJson& object, const char* key, const std::string& what) {
  const CocoJson& value = at(object, key, what);
  if (value.is_number_unsigned() && value.get<uint64_t>() <= std::numeric_limits<int64_t>::max())
    return value.get<int64_t>();
  if (!value.is_number_integer() || value.is_number_unsigned())
    throw DecodeError(str(what, ": '", key, "' is ", shown(value), ", expected a whole number"));
  return value.get<int64_t>();
}

std::string text(const CocoJson& object, const char* key, const std::string& what) {
  const CocoJson& value = at(object, key, what);
  if (!value.is_string()) throw DecodeError(str(what, ": '", key, "' is ", shown(value), ", expected a text"));
  return value.get<std::string>();
}

// Null, which Python writes for what is not known, is no finite number.
double number(const CocoJson& value, const std::string& what) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!value.is_number()) throw DecodeError(str(what, " is ", shown(value), ", expected numbers"));
  return value.get<double>();
}

CocoEntry read_annotation(const CocoJson& json, bool masks) {
  CocoEntry entry;
  entry.id = json.contains("id") ? whole(json, "id", "an annotation") : 0;
  const std::string what = str("annotation ", entry.id);
  entry.image = whole(json, "image_id", what);
  entry.category = whole(json, "category_id", what);
  const CocoJson& box = at(json, "bbox", what);
  if (!box.is_array() || box.size() != 4)
    throw DecodeError(str(what, ": 'bbox' is ", shown(box), ", expected [x, y, width, height]"));
  double v[4];
  for (size_t i = 0; i < 4; ++i) v[i] = number(box[i], what + ": 'bbox'");
  entry.box = {static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[0] + v[2]),
               static_cast<float>(v[1] + v[3])};
  if (const auto crowd = json.find("iscrowd"); crowd != json.end())
    entry.crowd = crowd->is_boolean() ? crowd->get<bool>() : number(*crowd, what + ": 'iscrowd'") != 0;
  if (const auto segmentation = json.find("segmentation"); masks && segmentation != json.end())
    entry.segmentation = *segmentation;
  return entry;
}

// Null where there is none.
std::shared_ptr<const vision::Mask> read_mask(const CocoJson& json, int height, int width, const std::string& what) {
  if (json.is_null() || json.empty()) return nullptr;
  try {
    if (json.is_array()) {
      std::vector<vision::Polygon> polygons;
      for (const CocoJson& part : json) {
        if (!part.is_array()) throw DecodeError(str("has the part ", shown(part), ", expected x, y, x, y ..."));
        vision::Polygon& polygon = polygons.emplace_back();
        for (const CocoJson& value : part) polygon.push_back(number(value, what));
      }
      return std::make_shared<vision::Mask>(vision::mask_of_polygons(polygons, height, width));
    }
    const CocoJson& counts = at(json, "counts", what);
    const CocoJson& size = at(json, "size", what);
    if (size != CocoJson::array({height, width}))
      throw DecodeError(
          str("is of an image of [height, width] = ", shown(size), ", and its image has ", height, " x ", width));
    if (counts.is_string())
      return std::make_shared<vision::Mask>(vision::parse_rle(counts.get<std::string>(), height, width));
    if (!counts.is_array()) throw DecodeError(str("has counts that are ", shown(counts)));
    std::vector<uint32_t> runs;
    for (const CocoJson& run : counts) {
      if (!run.is_number_unsigned() || run.get<uint64_t>() > std::numeric_limits<uint32_t>::max())
        throw DecodeError(str("has a run of ", shown(run), " pixels"));
      runs.push_back(run.get<uint32_t>());
    }
    return std::make_shared<vision::Mask>(height, width, runs);
  } catch (const UserError& error) {
    throw DecodeError(str(what, ' ', error.what()));
  } catch (const DecodeError& error) {
    throw DecodeError(str(what, ' ', error.what()));
  }
}

int side(const CocoJson& image, const char* key) {
  const auto found = image.find(key);
  if (found == image.end() || !found->is_number()) return 0;
  const double pixels = found->get<double>();
  return pixels >= 1 && pixels <= 1e6 ? static_cast<int>(pixels) : 0;
}

// Takes the elements of the three lists out of the document as they come and leaves nothing of them behind.
class CocoReader {
 public:
  explicit CocoReader(bool masks) : masks_(masks) {}

  void read(std::string_view json) {
    try {
      const CocoJson rest = CocoJson::parse(
          json.begin(), json.end(),
          [this](int depth, CocoJson::parse_event_t event, CocoJson& value) { return keep(depth, event, value); });
      if (!rest.is_object()) throw DecodeError("is no JSON object");
    } catch (const CocoJson::exception& error) {
      throw DecodeError(str("is no JSON of COCO: ", error.what()));
    }
  }

  CocoFile result() {
    if (images_.empty()) throw DecodeError("has no 'images'");
    if (categories_.empty()) throw DecodeError("has no 'categories'");
    CocoFile file;
    file.images = std::move(images_);
    for (const CocoEntry& entry : entries_) {
      const std::string what = str("annotation ", entry.id);
      const auto image = image_numbers_.find(entry.image);
      if (image == image_numbers_.end()) {
        file.findings.add(Finding::kNoImage, str(what, " (image_id ", entry.image, ")"));
        continue;
      }
      const auto category = categories_.find(entry.category);
      if (category == categories_.end())
        throw DecodeError(str(what, ": there is no category with the id ", entry.category));
      AnnotationFile& annotation = file.images[image->second].annotation;
      AnnotatedObject object{.class_name = category->second,
                             .box = entry.box,
                             .difficult = entry.crowd,
                             .crowd = entry.crowd,
                             .place = entry.id};
      if (masks_) {
        if (annotation.width == 0 || annotation.height == 0)
          throw DecodeError(str(what, ": its image has no 'width' and 'height', which its segmentation needs"));
        object.mask = read_mask(entry.segmentation, annotation.height, annotation.width, what + ": its segmentation");
      }
      annotation.objects.push_back(std::move(object));
    }
    for (const auto& [id, name] : categories_) file.categories.push_back(name);
    std::sort(file.categories.begin(), file.categories.end());
    const auto twice = std::unique(file.categories.begin(), file.categories.end());
    file.categories.erase(twice, file.categories.end());
    return file;
  }

 private:
  // Nested deeper than any file of COCO is: a text that would take the parser's stack.
  static constexpr int kDeepest = 64;

  bool keep(int depth, CocoJson::parse_event_t event, CocoJson& value) {
    using Event = CocoJson::parse_event_t;
    if (depth > kDeepest) throw DecodeError("is nested more than 64 levels deep");
    if (event == Event::key && depth == 1) list_ = value.get<std::string>();
    if (event != Event::object_end || depth != 2) return true;
    if (list_ == "images") {
      add_image(value);
    } else if (list_ == "categories") {
      const int64_t id = whole(value, "id", "a category");
      if (!categories_.emplace(id, text(value, "name", str("category ", id))).second)
        throw DecodeError(str("there are two categories with the id ", id));
    } else if (list_ == "annotations") {
      entries_.push_back(read_annotation(value, masks_));
    }
    return false;
  }

  void add_image(const CocoJson& json) {
    const int64_t id = whole(json, "id", "an image");
    if (!image_numbers_.emplace(id, images_.size()).second)
      throw DecodeError(str("there are two images with the id ", id));
    images_.push_back({.file_name = text(json, "file_name", str("image ", id)),
                       .annotation = {.width = side(json, "width"), .height = side(json, "height"), .objects = {}}});
  }

  bool masks_;
  std::string list_;  // key of the document that is being read
  std::vector<CocoImage> images_;
  std::unordered_map<int64_t, size_t> image_numbers_;  // by id
  std::unordered_map<int64_t, std::string> categories_;
  std::vector<CocoEntry> entries_;
};

}  // namespace

CocoFile parse_coco(std::string_view json, bool masks) {
  CocoReader reader(masks);
  reader.read(json);
  return reader.result();
}

AnnotatedSet read_coco(const DatasetOptions& options) {
  const bool apart = !options.labels.empty(), split = !options.split.empty();
  const fs::path images = split ? options.path / options.split : options.path;
  const fs::path labels = apart   ? options.labels
                          : split ? options.path / "annotations" / ("instances_" + options.split + ".json")
                                  : options.path / "_annotations.coco.json";
  if (!fs::exists(labels))
    fail(labels.string(), ": there is no such file; name the JSON file of the annotations by `labels`");
  const std::string json = read_file(labels);
  CocoFile file;
  try {
    file = parse_coco(json, options.masks);
  } catch (const DecodeError& error) {
    fail(labels.string(), ": ", error.what());
  }
  AnnotatedSet set;
  set.place = "annotation";
  set.classes = std::move(file.categories);
  set.findings = std::move(file.findings);
  set.hash = hash64(json);
  for (CocoImage& image : file.images) {
    const fs::path path = images / image.file_name;
    std::error_code error;
    const uintmax_t bytes = fs::file_size(path, error);
    if (error) {
      set.findings.add(Finding::kNoImage, path.string());
      continue;
    }
    set.hash = hash64(str(image.file_name, '\n', bytes, '\n'), set.hash);
    set.images.push_back({.path = path,
                          .name = fs::path(image.file_name).replace_extension().string(),
                          .source = labels.string(),
                          .annotation = std::move(image.annotation)});
  }
  return set;
}

}  // namespace octet::data
