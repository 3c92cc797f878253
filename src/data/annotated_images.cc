#include "data/annotated_images.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "data/annotation_file.h"
#include "data/file_dataset.h"

namespace octet::data {
namespace fs = std::filesystem;
namespace {

struct Layout {
  fs::path images, annotations;
  std::string ending;  // of annotations
  AnnotationFile (*parse)(std::string_view);
  const char* no_class;             // objects of this name are left out; nullptr: none
  std::vector<std::string> chosen;  // names without endings, in this order; empty: all, sorted
};

// The first of `names` that is a directory in `root`.
fs::path directory_in(const fs::path& root, const std::vector<const char*>& names) {
  for (const char* name : names)
    if (fs::is_directory(root / name)) return root / name;
  std::string list;
  for (const char* name : names) list += str(list.empty() ? "" : " or ", "'", name, "'");
  fail(root.string(), ": has no directory ", list);
}

std::map<std::string, fs::path> files_by_stem(const fs::path& directory, bool (*wanted)(const fs::path&)) {
  std::map<std::string, fs::path> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    if (!entry.path().filename().string().starts_with(".") && wanted(entry.path()) && entry.is_regular_file()) {
      const auto [other, is_new] = out.emplace(entry.path().stem().string(), entry.path());
      require(is_new, entry.path().string(), ": there is ", other->second.filename().string(),
              ", too; which one is annotated?");
    }
  return out;
}

std::unique_ptr<Dataset> open(Layout layout, const DatasetOptions& options) {
  const std::map<std::string, fs::path> images = files_by_stem(layout.images, has_image_ending);
  require(!images.empty(), layout.images.string(), ": has no images (", kImageFormats, ")");
  const bool all = layout.chosen.empty();
  if (all)
    for (const auto& [name, path] : images) layout.chosen.push_back(name);
  std::vector<FileDataset::Entry> entries;
  std::vector<std::vector<AnnotatedObject>> objects;
  std::set<std::string> classes;
  uint64_t hash = 0;
  int64_t empty_boxes = 0, left_out = 0;
  for (const std::string& name : layout.chosen) {
    const auto image = images.find(name);
    require(image != images.end(), (layout.images / name).string(), ": there is no image of that name (", kImageFormats,
            ")");
    const fs::path path = layout.annotations / (name + layout.ending);
    if (all && !fs::exists(path)) {
      ++left_out;
      continue;
    }
    const std::string text = read_file(path);
    try {
      AnnotationFile file = layout.parse(text);
      empty_boxes += file.empty_boxes;
      if (layout.no_class) std::erase_if(file.objects, [&](const auto& o) { return o.class_name == layout.no_class; });
      for (const AnnotatedObject& object : file.objects) classes.insert(object.class_name);
      objects.push_back(std::move(file.objects));
    } catch (const DecodeError& error) {
      fail(path.string(), ": ", error.what());
    }
    entries.push_back({.path = image->second, .truth = {}});
    hash = hash64(str(name, '\n', fs::file_size(image->second), '\n', text), hash);
  }
  require(!entries.empty(), layout.annotations.string(), ": has no annotation of any of the ", images.size(),
          " images in ", layout.images.string());
  require(!classes.empty(), layout.annotations.string(), ": has no object in any of its ", entries.size(), " files");
  if (left_out > 0)
    log_warning(layout.images.string(), ": ", left_out, " of ", images.size(),
                " images have no annotation and are left out");
  if (empty_boxes > 0) log_warning(layout.annotations.string(), ": ", empty_boxes, " boxes without area are left out");
  const std::vector<std::string> names(classes.begin(), classes.end());
  for (size_t i = 0; i < entries.size(); ++i)
    for (const AnnotatedObject& object : objects[i])
      entries[i].truth.objects.push_back(
          {.box = object.box,
           .label = static_cast<int>(std::lower_bound(names.begin(), names.end(), object.class_name) - names.begin()),
           .difficult = object.difficult});
  const DecodeOptions decode{.channels = options.channels == 1 ? 1 : 3, .exif_orientation = options.exif_orientation};
  return std::make_unique<FileDataset>(std::move(entries), names, hash, decode);
}

// The first word of every line.
std::vector<std::string> names_in(const fs::path& list) {
  std::istringstream lines(read_file(list));
  std::vector<std::string> out;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (std::string name; words >> name) out.push_back(name);
  }
  require(!out.empty(), list.string(), ": names no image");
  return out;
}

template <typename Open>
std::unique_ptr<Dataset> with_file_errors(const Open& open) {
  try {
    return open();
  } catch (const fs::filesystem_error& error) {
    fail(error.path1().string(), ": cannot be read: ", error.code().message());
  }
}

}  // namespace

std::unique_ptr<Dataset> open_voc(const DatasetOptions& options) {
  return with_file_errors([&] {
    Layout layout{.images = directory_in(options.path, {"JPEGImages"}),
                  .annotations = directory_in(options.path, {"Annotations"}),
                  .ending = ".xml",
                  .parse = parse_voc,
                  .no_class = nullptr,
                  .chosen = {}};
    if (!options.split.empty())
      layout.chosen = names_in(options.path / "ImageSets" / "Main" / (options.split + ".txt"));
    return open(std::move(layout), options);
  });
}

std::unique_ptr<Dataset> open_kitti(const DatasetOptions& options) {
  return with_file_errors([&] {
    const fs::path root = options.split.empty() ? options.path : options.path / options.split;
    return open({.images = directory_in(root, {"image_2", "images"}),
                 .annotations = directory_in(root, {"label_2", "labels"}),
                 .ending = ".txt",
                 .parse = parse_kitti,
                 .no_class = "DontCare",
                 .chosen = {}},
                options);
  });
}

}  // namespace octet::data
