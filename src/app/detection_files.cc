#include "app/detection_files.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/nearest.h"
#include "data/draw.h"
#include "data/image_write.h"

namespace octet::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string name_of(const std::vector<std::string>& names, int label) {
  return static_cast<size_t>(label) < names.size() ? names[static_cast<size_t>(label)] : std::to_string(label);
}

// The number whose shortest decimal form is that of the float, so that JSON does not show digits that mean nothing.
double shortest(float value) {
  char text[64];
  const char* const end = std::to_chars(text, text + sizeof text, value).ptr;
  double out = 0;
  std::from_chars(text, end, out);
  return out;
}

// The number that a name is: "000000000139" is 139.
std::optional<int64_t> number_of(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

fs::path folder_of(const data::Dataset& images, int64_t index) {
  return fs::path(images.name(index)).parent_path();
}

// The deepest folder that all are in.
fs::path common_folder(const data::Dataset& images) {
  fs::path common = folder_of(images, 0);
  for (int64_t i = 1; i < images.size(); ++i) {
    const fs::path folder = folder_of(images, i);
    fs::path shared;
    for (auto a = common.begin(), b = folder.begin(); a != common.end() && b != folder.end() && *a == *b; ++a, ++b)
      shared /= *a;
    common = shared;
  }
  return common;
}

}  // namespace

std::string kitti_text(std::span<const vision::Object> objects, const std::vector<std::string>& class_names) {
  std::string out;
  for (const vision::Object& object : objects) {
    std::string name = name_of(class_names, object.label);
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return c <= ' '; }, '_');
    char fields[256];
    std::snprintf(fields, sizeof fields, " -1 -1 -10 %.2f %.2f %.2f %.2f -1 -1 -1 -1000 -1000 -1000 -10 %.6g\n",
                  object.box.x0, object.box.y0, object.box.x1, object.box.y1, object.score);
    out += name + fields;
  }
  return out;
}

CocoIds parse_coco_ids(std::string_view text, const std::string& name) {
  const nlohmann::json root = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto read = [&](const char* list, const char* key) {
    std::map<std::string, int64_t> ids;
    const auto entries = root.find(list);
    if (entries == root.end() || !entries->is_array())
      fail(name, ": has no list '", list, "', as COCO's annotations have");
    for (const nlohmann::json& entry : *entries) {
      const bool right = entry.is_object() && entry.contains("id") && entry["id"].is_number_integer() &&
                         entry.contains(key) && entry[key].is_string();
      if (!right) fail(name, ": ", list, "[", ids.size(), "] has no id or no ", key);
      if (!ids.emplace(entry[key].get<std::string>(), entry["id"].get<int64_t>()).second)
        fail(name, ": ", list, " has '", entry[key].get<std::string>(), "' twice");
    }
    return ids;
  };
  if (!root.is_object()) fail(name, ": is no JSON object; expected COCO's annotations");
  return {.images = read("images", "file_name"), .categories = read("categories", "name")};
}

std::vector<fs::path> names_for_results(const data::Dataset& images) {
  std::vector<fs::path> names;
  std::set<fs::path> taken;
  bool repeats = false;
  for (int64_t i = 0; i < images.size(); ++i) {
    names.push_back(fs::path(images.name(i)).stem());
    repeats |= !taken.insert(names.back()).second;
  }
  if (!repeats) return names;
  const fs::path common = common_folder(images);
  taken.clear();
  for (int64_t i = 0; i < images.size(); ++i) {
    const fs::path file(images.name(i));
    fs::path& name = names[static_cast<size_t>(i)];
    const fs::path folder = file.parent_path().lexically_relative(common);
    name = folder / file.stem();
    // Of two files that differ in their endings the second keeps its own.
    for (int n = 0; !taken.insert(name).second; ++n)
      name = folder / (n == 0 ? file.filename() : fs::path(str(file.filename().string(), "_", n)));
    name = name.lexically_normal();
  }
  return names;
}

DetectionFiles::DetectionFiles(DetectionOutputs outputs, std::vector<std::string> class_names,
                               const data::Dataset& images)
    : outputs_(std::move(outputs)), class_names_(std::move(class_names)), images_(images) {
  if (outputs_.pictures.empty() && outputs_.kitti.empty()) return;
  names_ = names_for_results(images);
  check();
  for (const fs::path& folder : {outputs_.pictures, outputs_.kitti})
    if (!folder.empty()) make_results_directory(folder);
}

void DetectionFiles::check() const {
  std::set<fs::path> inputs;
  for (int64_t i = 0; i < images_.size(); ++i) inputs.insert(fs::weakly_canonical(images_.name(i)));
  for (size_t i = 0; i < names_.size(); ++i) {
    if (!outputs_.pictures.empty() && inputs.count(fs::weakly_canonical(picture(i))))
      fail_usage(picture(i).string(),
                 ": is one of the images, and would be replaced by its picture; name another folder");
    if (!outputs_.kitti.empty() && !outputs_.replace && fs::exists(text(i)))
      fail_usage(text(i).string(), ": exists; name another folder, or give --force to replace the texts in it");
  }
}

std::string DetectionFiles::class_name(int label) const {
  return name_of(class_names_, label);
}

void DetectionFiles::add(int64_t index, std::span<const vision::Object> objects, double least_score) {
  if (!outputs_.pictures.empty()) draw(index, objects, least_score);
  if (!outputs_.kitti.empty()) {
    const fs::path file = text(static_cast<size_t>(index));
    make_results_directory(file.parent_path());
    write_file_atomically(file, kitti_text(objects, class_names_));
  }
  if (!outputs_.coco.empty()) add_coco(index, objects);
}

void DetectionFiles::draw(int64_t index, std::span<const vision::Object> objects, double least_score) const {
  std::vector<vision::Object> shown;
  std::copy_if(objects.begin(), objects.end(), std::back_inserter(shown),
               [&](const vision::Object& object) { return object.score >= least_score; });
  data::Image image = images_.get(index).image;
  data::draw_objects(image, shown, [&](int label) { return class_name(label); });
  const fs::path file = picture(static_cast<size_t>(index));
  make_results_directory(file.parent_path());
  data::write_png(file, image);
}

int64_t DetectionFiles::coco_image(int64_t index) const {
  const fs::path file(images_.name(index));
  if (outputs_.ids.images.empty()) return number_of(file.stem().string()).value_or(index + 1);
  // The name with as many folders as the annotations have.
  fs::path name;
  for (fs::path rest = file; !rest.filename().empty(); rest = rest.parent_path()) {
    name = name.empty() ? rest.filename() : rest.filename() / name;
    if (const auto it = outputs_.ids.images.find(name.string()); it != outputs_.ids.images.end()) return it->second;
    if (rest == rest.parent_path()) break;
  }
  fail(file.string(), ": COCO's annotations have no image of this name");
}

int64_t DetectionFiles::coco_category(int label) const {
  if (outputs_.ids.categories.empty()) return label + 1;
  const std::string name = class_name(label);
  if (const auto it = outputs_.ids.categories.find(name); it != outputs_.ids.categories.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, id] : outputs_.ids.categories) names.push_back(known);
  fail("COCO's annotations have no category '", name, "'", did_you_mean(name, names));
}

void DetectionFiles::add_coco(int64_t index, std::span<const vision::Object> objects) {
  const int64_t image = coco_image(index);
  for (const vision::Object& object : objects)
    coco_.push_back({{"image_id", image},
                     {"category_id", coco_category(object.label)},
                     {"bbox",
                      {shortest(object.box.x0), shortest(object.box.y0), shortest(object.box.width()),
                       shortest(object.box.height())}},
                     {"score", shortest(object.score)}});
}

void DetectionFiles::finish() const {
  if (!outputs_.coco.empty()) write_file_atomically(outputs_.coco, coco_.dump() + "\n");
}

}  // namespace octet::app
