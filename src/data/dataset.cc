#include "data/dataset.h"

#include "base/error.h"
#include "data/annotated_images.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/image_folder.h"

namespace octet::data {
namespace {

struct Format {
  const char* name;
  std::unique_ptr<Dataset> (*open)(const DatasetOptions&);
  bool fixed_splits;  // train and test only; image folders name their own
};

// A new format is one file pair and one row.
constexpr Format kFormats[] = {
    {"idx", open_idx, true},
    {"image_folder", open_image_folder, false},
    {"cifar10", open_cifar, true},
    {"cifar100", open_cifar, true},
    {"voc", open_voc, false},
    {"kitti", open_kitti, false},
};

}  // namespace

const std::vector<std::string>& dataset_formats() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Format& format : kFormats) out.push_back(format.name);
    return out;
  }();
  return names;
}

std::vector<std::string> read_class_names(const DatasetOptions& options) {
  if (options.format == "image_folder") return image_folder_class_names(options);
  return open_dataset(options)->class_names();
}

std::unique_ptr<Dataset> open_dataset(const DatasetOptions& options) {
  for (const Format& format : kFormats) {
    if (options.format != format.name) continue;
    if (options.channels != 0 && options.channels != 1 && options.channels != 3)
      fail_usage("dataset ", options.path.string(), ": ", options.channels,
                 " channels, expected 1, 3 or 0 (as stored)");
    if (format.fixed_splits && !options.split.empty() && options.split != "train" && options.split != "test")
      fail_usage("dataset ", options.path.string(), ": unknown split '", options.split, "', expected train or test");
    std::error_code ignored;
    require(std::filesystem::exists(options.path, ignored), options.path.string(),
            ": no such file or directory (dataset of format ", options.format, ")");
    return format.open(options);
  }
  std::string names;
  for (const std::string& name : dataset_formats()) names += (names.empty() ? "" : ", ") + name;
  fail_usage("unknown dataset format '", options.format, "', expected one of ", names);
}

}  // namespace octet::data
