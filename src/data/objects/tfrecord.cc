#include "data/objects/tfrecord.h"

#include <algorithm>
#include <cstdio>
#include <regex>

#include "base/error.h"
#include "base/files.h"
#include "base/records.h"
#include "data/image.h"
#include "data/image_file.h"
#include "data/objects/example.h"
#include "data/record_shards.h"

namespace octet::data {
namespace fs = std::filesystem;
namespace {

// Finds images by the ids of records; most of a data set have the same ending.
class ImageFinder {
 public:
  ImageFinder(fs::path folder, const std::string& ending) : folder_(std::move(folder)) {
    if (!ending.empty()) endings_ = {ending.front() == '.' ? ending : "." + ending};
  }
  // The path of the image and the size of its file; nothing where there is none.
  std::optional<std::pair<fs::path, uintmax_t>> find(const std::string& id) {
    for (size_t i = 0; i < endings_.size(); ++i) {
      const fs::path path = folder_ / (id + endings_[i]);
      std::error_code error;
      const uintmax_t bytes = fs::file_size(path, error);
      if (error) continue;
      std::swap(endings_[0], endings_[i]);
      return std::pair(path, bytes);
    }
    return std::nullopt;
  }

 private:
  fs::path folder_;
  std::vector<std::string> endings_ = {".png", ".jpg",  ".jpeg", ".PNG", ".JPG", ".JPEG",
                                       ".bmp", ".webp", ".ppm",  ".pgm", ""};
};

// Those of the wanted folds.
std::vector<fs::path> wanted_files(const DatasetOptions& options) {
  std::vector<fs::path> files = record_files(options.labels);
  if (!options.fold) return files;
  std::erase_if(files, [&](const fs::path& file) {
    const std::optional<FoldName> name = fold_of(file.filename().string());
    if (!name)
      fail(file.string(), ": its name has no part like -fold-000-of-002, by which data.validation_fold chooses");
    if (options.fold->fold >= name->folds)
      fail_usage(file.string(), ": is of ", name->folds, " folds, 0 to ", name->folds - 1, "; data.validation_fold is ",
                 options.fold->fold);
    return (name->fold == options.fold->fold) == options.fold->others;
  });
  if (files.empty())
    fail(options.labels.string(), ": has no file of ", options.fold->others ? "other folds than " : "fold ",
         options.fold->fold, options.fold->others ? ", so nothing to train with" : "; it would be empty");
  return files;
}

}  // namespace

std::optional<FoldName> fold_of(const std::string& file_name) {
  static const std::regex kFold("-fold-([0-9]{1,9})-of-([0-9]{1,9})(?![0-9])");
  std::smatch match;
  if (!std::regex_search(file_name, match, kFold)) return std::nullopt;
  return FoldName{.fold = std::stoll(match[1]), .folds = std::stoll(match[2])};
}

std::string record_file_name(const std::string& name, int64_t fold, int64_t folds, int64_t shard, int64_t shards) {
  std::string out = name;
  char part[80];
  if (folds > 0) {
    std::snprintf(part, sizeof part, "-fold-%03lld-of-%03lld", static_cast<long long>(fold),
                  static_cast<long long>(folds));
    out += part;
  }
  if (shards > 0) {
    std::snprintf(part, sizeof part, "-shard-%05lld-of-%05lld", static_cast<long long>(shard),
                  static_cast<long long>(shards));
    out += part;
  }
  return out;
}

std::vector<fs::path> record_files(const fs::path& pattern) {
  std::error_code error;
  if (fs::is_regular_file(pattern, error)) return {pattern};
  const bool folder = fs::is_directory(pattern, error);
  const fs::path root = folder ? pattern : pattern.has_parent_path() ? pattern.parent_path() : fs::path(".");
  const std::string wanted = folder ? "*" : pattern.filename().string();
  require(fs::is_directory(root, error), root.string(), ": is no folder, so it has no TFRecord files");
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') || name.starts_with("idx-") || name.ends_with(".json") || !fits_pattern(name, wanted))
      continue;
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  require(!files.empty(), pattern.string(), ": there is no such file", folder ? " in that folder" : "",
          "; TFRecord files are named by `labels`, a folder or a pattern like tfrecords/kitti_trainval*");
  std::sort(files.begin(), files.end());
  return files;
}

AnnotatedSet read_tfrecord(const DatasetOptions& options) {
  if (options.labels.empty())
    fail_usage(options.path.string(), ": the format tfrecord needs `labels`, the folder of the TFRecord files");
  AnnotatedSet set;
  set.place = "object";
  set.dont_care = true;
  ImageFinder images(options.path, options.image_extension);
  for (const fs::path& file : wanted_files(options)) {
    const std::string bytes = read_file(file);
    set.hash = hash64(bytes, set.hash);
    RecordReader records(bytes, file.string());
    while (const auto record = records.next()) {
      const std::string where = str(file.string(), ", record ", records.count());
      try {
        Example example = parse_example(*record);
        const auto image = images.find(example.id);
        if (!image) {
          set.findings.add(Finding::kNoImage,
                           str(where, " (", (options.path / example.id).string(),
                               options.image_extension.empty() ? "" : ".", options.image_extension, ")"));
          continue;
        }
        set.hash = hash64(str(image->second, '\n'), set.hash);
        set.images.push_back({.path = image->first,
                              .name = std::move(example.id),
                              .source = where,
                              .annotation = std::move(example.annotation)});
      } catch (const DecodeError& error) {
        set.findings.add(Finding::kUnreadableAnnotation, str(where, ": ", error.what()));
      }
    }
  }
  return set;
}

}  // namespace octet::data
