#include "data/dataset.h"

#include "base/error.h"
#include "data/cifar.h"
#include "data/folds.h"
#include "data/idx.h"
#include "data/image_cache.h"
#include "data/image_folder.h"
#include "data/imagenet_tfrecord.h"
#include "data/objects/annotated_set.h"
#include "data/objects/coco.h"
#include "data/objects/kitti.h"
#include "data/objects/tfrecord.h"
#include "data/objects/voc.h"
#include "data/selection.h"
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
    {.name = "imagenet_tfrecord",
     .help = "ImageNet's records, as of TF-slim",
     .open = open_imagenet_tfrecord,
     .patterns = true},
    {.name = "voc", .help = "PASCAL VOC, objects in XML files", .read_objects = read_voc, .separate_labels = true},
    {.name = "kitti", .help = "objects in text files", .read_objects = read_kitti, .separate_labels = true},
    {.name = "coco", .help = "objects in a JSON file", .read_objects = read_coco, .separate_labels = true},
    {.name = "tfrecord",
     .help = "objects in TAO's records",
     .read_objects = read_tfrecord,
     .separate_labels = true,
     .own_folds = true},
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
      .input_pattern()
      .known_elsewhere_as({"root", "dir", "directory", "image_directory_path"})
      .help(
          "Folder of the images; idx: folder with the usual file names, or the image file; imagenet_tfrecord: folder, "
          "file or a pattern like records/train-*.");
  s.field("labels", source.labels)
      .known_elsewhere_as({"annotations", "ann_file", "tfrecords_path", "label_directory_path"})
      .help(
          "idx: label file, where `path` is an image file and the labels are not beside it. coco: the JSON file. "
          "tfrecord: the folder of the record files, or a pattern like tfrecords/trainval*. kitti and voc: folder of "
          "the label files, where it is not the usual one in `path`, which then is that of the images. Classes of an "
          "image_folder are its sub-folders, sorted.");
  s.field("image_extension", source.image_extension)
      .written_when([&source] { return !source.image_extension.empty(); })
      .help("tfrecord: ending of the image files, as png; empty: whichever is found.");
  s.field("split", source.split)
      .check("a name without slashes",
             [](const std::string& name) { return name.find('/') == std::string::npos && name != "." && name != ".."; })
      .known_elsewhere_as({"subset"})
      .help(
          "idx and cifar: train or test (empty or auto: train for `train` and `calibration`, test for `val` and "
          "`test`); voc: the images that ImageSets/Main/SPLIT.txt lists; coco: annotations/instances_SPLIT.json with "
          "the images in the sub-folder SPLIT; image_folder and kitti: sub-folder of that name; imagenet_tfrecord: the "
          "files SPLIT-00000-of-01024 and so on. Empty or auto: all.");
  s.field("label_offset", source.label_offset)
      .range(0, 1e6)
      .written_when([&source] { return source.label_offset != DatasetOptions().label_offset; })
      .known_elsewhere_as({"labels_offset", "first_label"})
      .help(
          "imagenet_tfrecord: image/class/label of the first class. 1: records of TF-slim and the TensorFlow models, "
          "where 0 is the background; 0: records that count from 0, and networks that learn the background, too.");
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
  s.field("source_weight", source.source_weight)
      .above(0, 1e6)
      .written_when([&source] { return source.source_weight != 1; })
      .help("data.train: factor of the loss of each image.");
  s.field("folds", source.folds)
      .range(0, 1e6)
      .written_when([&source] { return source.folds != 0; })
      .known_elsewhere_as({"num_folds", "k_folds", "num_partitions"})
      .help(
          "data.train: into how many parts data.validation_fold divides the images, by the names of their files, "
          "whatever their order; 0: not at all. Files of the format tfrecord name their folds themselves.");
  s.field("lower_case_classes", source.lower_case_classes)
      .written_when([&source] { return source.lower_case_classes; })
      .help(
          "Formats with objects: take the names of classes in lower case, as TAO's dataset_convert does with KITTI and "
          "COCO. Without it names match exactly.");
  s.field("masks", source.masks)
      .written_when([&source] { return source.masks; })
      .help("coco: read the outlines of objects, too, for tasks that learn them.");
  s.rule("split", [&source]() -> std::string {
    const std::string& split = source.split;
    if (!dataset_format(source.format).fixed_splits || split.empty() || split == "auto" || split == "train" ||
        split == "test")
      return "";
    return str("is '", split, "'; the format ", source.format, " has train and test");
  });
  const auto of_objects = [&s, &source](const char* key, auto is_given) {
    s.rule(key, [&source, is_given]() -> std::string {
      return is_given() && !dataset_format(source.format).read_objects
                 ? str("is for formats with objects in images; ", source.format, " has none")
                 : "";
    });
  };
  s.rule("label_offset", [&source]() -> std::string {
    return source.label_offset != DatasetOptions().label_offset && source.format != "imagenet_tfrecord"
               ? str("belongs to the format imagenet_tfrecord, not to ", source.format)
               : "";
  });
  of_objects("source_weight", [&source] { return source.source_weight != 1; });
  of_objects("lower_case_classes", [&source] { return source.lower_case_classes; });
  of_objects("masks", [&source] { return source.masks; });
  of_objects("image_extension", [&source] { return !source.image_extension.empty(); });
  s.rule("labels", [&source]() -> std::string {
    if (source.labels.empty() || dataset_format(source.format).separate_labels) return "";
    std::vector<std::string> takers;
    for (const DatasetFormat& format : kFormats)
      if (format.separate_labels) takers.push_back(format.name);
    return str("belongs to the format ", schema::alternatives(takers), "; other formats hold their labels themselves");
  });
}

namespace {

std::unique_ptr<Dataset> open_whole(const DatasetFormat& format, const DatasetOptions& options) {
  if (!format.read_objects) return format.open(options);
  try {
    return dataset_of(format.read_objects(options), options);
  } catch (const std::filesystem::filesystem_error& error) {
    fail(error.path1().string(), ": cannot be read: ", error.code().message());
  }
}

}  // namespace

std::vector<std::string> read_class_names(const DatasetOptions& options) {
  const DatasetFormat& format = dataset_format(options.format);
  return format.class_names ? format.class_names(options) : open_whole(format, options)->class_names();
}

std::unique_ptr<Dataset> open_dataset(const DatasetOptions& options) {
  const DatasetFormat& format = dataset_format(options.format);
  if (options.channels != 0 && options.channels != 1 && options.channels != 3)
    fail_usage("dataset ", options.path.string(), ": ", options.channels, " channels, expected 1, 3 or 0 (as stored)");
  if (format.fixed_splits && !options.split.empty() && options.split != "train" && options.split != "test")
    fail_usage("dataset ", options.path.string(), ": unknown split '", options.split, "', expected train or test");
  std::error_code ignored;
  require(format.patterns || std::filesystem::exists(options.path, ignored), options.path.string(),
          ": no such file or directory (dataset of format ", options.format, ")");
  std::unique_ptr<Dataset> dataset = take_subset(open_whole(format, options), options.offset, options.limit);
  if (options.fold && !format.own_folds)
    dataset = take_fold(std::move(dataset), options.folds, *options.fold, options.path.string());
  if (options.cache && !format.decoded) dataset = keep_decoded(std::move(dataset), options.cache);
  return dataset;
}

}  // namespace octet::data
