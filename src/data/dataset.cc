#include "data/dataset.h"

#include "base/error.h"
#include "data/annotated_images.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/image_cache.h"
#include "data/image_folder.h"
#include "data/subset.h"
#include "schema/schema.h"

namespace octet::data {
namespace {

constexpr DatasetFormat kFormats[] = {
    {.name = "idx",
     .help = "MNIST family, also .gz",
     .open = open_idx,
     .fixed_splits = true,
     .separate_labels = true,
     .decoded = true},
    {.name = "image_folder",
     .help = "one folder of JPEG or PNG files a class",
     .open = open_image_folder,
     .class_names = image_folder_class_names},
    {.name = "cifar10", .help = "", .open = open_cifar, .fixed_splits = true, .decoded = true},
    {.name = "cifar100", .help = "binary version", .open = open_cifar, .fixed_splits = true, .decoded = true},
    {.name = "voc", .help = "PASCAL VOC, objects in XML files", .open = open_voc},
    {.name = "kitti", .help = "objects in text files", .open = open_kitti},
};

}  // namespace

std::span<const DatasetFormat> dataset_formats() {
  return kFormats;
}

const DatasetFormat& dataset_format(const std::string& name) {
  std::string names;
  for (const DatasetFormat& format : kFormats) {
    if (name == format.name) return format;
    names += str(names.empty() ? "" : ", ", format.name);
  }
  fail_usage("unknown dataset format '", name, "', expected one of ", names);
}

void describe(schema::Section& s, DatasetOptions& source) {
  std::vector<std::pair<std::string, std::string>> names;
  std::string help;
  for (const DatasetFormat& format : kFormats) {
    names.emplace_back(format.name, format.name);
    help += str(help.empty() ? "" : ", ", format.name, *format.help ? str(" (", format.help, ")") : "");
  }
  s.choice("format", source.format, names).required().help(help + ".");
  s.field("path", source.path)
      .required()
      .input_path()
      .known_elsewhere_as({"root", "dir", "directory", "image_directory_path"})
      .help("Folder of the images; idx: folder with the usual file names, or the image file.");
  s.field("labels", source.labels)
      .input_path()
      .help(
          "idx: label file, where `path` is an image file and the labels are not beside it. Classes of an image_folder "
          "are its sub-folders, sorted.");
  s.field("split", source.split)
      .check("a name without slashes",
             [](const std::string& name) { return name.find('/') == std::string::npos && name != "." && name != ".."; })
      .known_elsewhere_as({"subset"})
      .help(
          "idx and cifar: train or test (empty or auto: train for `train` and `calibration`, test for `val` and "
          "`test`); voc: the images that ImageSets/Main/SPLIT.txt lists; image_folder and kitti: sub-folder of that "
          "name. Empty or auto: all.");
  s.field("offset", source.offset)
      .range(0, 1e12)
      .unit("images")
      .help("First image taken, in the order of the file; with limit it splits one set in two.");
  s.field("limit", source.limit)
      .range(0, 1e12)
      .unit("images")
      .known_elsewhere_as({"count", "num_images"})
      .help("How many images are taken from there; 0: all that follow.");
  s.field("weight", source.weight)
      .above(0, 1000)
      .unit("times an epoch")
      .written_when([&source] { return source.weight != 1; })
      .known_elsewhere_as({"repeat", "sampling_weight"})
      .help(
          "data.train: how often each image comes in an epoch. A source of n images gives weight * n, rounded, at "
          "least "
          "one; what a fraction leaves out of an epoch comes in the next ones. Calibration takes every image once.");
  s.rule("split", [&source]() -> std::string {
    const std::string& split = source.split;
    if (!dataset_format(source.format).fixed_splits || split.empty() || split == "auto" || split == "train" ||
        split == "test")
      return "";
    return str("is '", split, "'; the format ", source.format, " has train and test");
  });
  s.rule("labels", [&source]() -> std::string {
    if (source.labels.empty() || dataset_format(source.format).separate_labels) return "";
    std::vector<std::string> takers;
    for (const DatasetFormat& format : kFormats)
      if (format.separate_labels) takers.push_back(format.name);
    return str("belongs to the format ", schema::alternatives(takers), "; other formats hold their labels themselves");
  });
}

std::vector<std::string> read_class_names(const DatasetOptions& options) {
  const DatasetFormat& format = dataset_format(options.format);
  return format.class_names ? format.class_names(options) : open_dataset(options)->class_names();
}

std::unique_ptr<Dataset> open_dataset(const DatasetOptions& options) {
  const DatasetFormat& format = dataset_format(options.format);
  if (options.channels != 0 && options.channels != 1 && options.channels != 3)
    fail_usage("dataset ", options.path.string(), ": ", options.channels, " channels, expected 1, 3 or 0 (as stored)");
  if (format.fixed_splits && !options.split.empty() && options.split != "train" && options.split != "test")
    fail_usage("dataset ", options.path.string(), ": unknown split '", options.split, "', expected train or test");
  std::error_code ignored;
  require(std::filesystem::exists(options.path, ignored), options.path.string(),
          ": no such file or directory (dataset of format ", options.format, ")");
  std::unique_ptr<Dataset> dataset = take_subset(format.open(options), options.offset, options.limit);
  if (options.cache && !format.decoded) dataset = keep_decoded(std::move(dataset), options.cache);
  return dataset;
}

}  // namespace octet::data
