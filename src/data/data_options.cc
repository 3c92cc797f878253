#include "data/data_options.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "data/joined.h"
#include "schema/schema.h"

namespace octet::data {

void describe(schema::Section& s, DataOptions& data) {
  s.list("train", data.train)
      .or_section()
      .help(
          "Training images. Several sources, as a list, are joined: their classes are united by name, the first "
          "source's first.");
  s.list("val", data.val)
      .or_section()
      .same_keys_as("data.train")
      .known_elsewhere_as({"validation", "valid", "eval"})
      .help("Images evaluated during training; the best checkpoint is chosen by them.");
  s.list("test", data.test).or_section().same_keys_as("data.train").help("Images of `octet evaluate`; absent: `val`.");
  s.list("calibration", data.calibration)
      .or_section()
      .same_keys_as("data.train")
      .help("Images that ranges are collected from; absent: `train`. Never use test images here.");
  for (const auto& [name, sources] :
       {std::pair("val", &data.val), std::pair("test", &data.test), std::pair("calibration", &data.calibration)})
    s.rule(name, [sources = sources] {  // a structured binding cannot be captured by all compilers
      const bool weighted = std::any_of(sources->begin(), sources->end(), [](const auto& s) { return s.weight != 1; });
      return weighted ? "has a weight; only training takes images more or less often than once" : "";
    });
  s.field("target_classes", data.classes.target_classes)
      .written_when([&data] { return !data.classes.target_classes.empty(); })
      .help(
          "Names of the classes that are learned, in the order of the labels; what has another class is left out, with "
          "a "
          "word. Empty: those that target_class_mapping names, else all, sorted.");
  s.field("target_class_mapping", data.classes.targets)
      .written_when([&data] { return !data.classes.targets.empty(); })
      .known_elsewhere_as({"class_mapping", "classmap", "label_map"})
      .help(
          "Names in the files and the class that each is taken for, as {car: vehicle, van: vehicle}. What it does not "
          "name is left out, with a word. Names match exactly, also in case. Empty: each name is its own class.");
  s.field("sampling_mode", data.sampling)
      .written_when([&data] { return data.sampling != SamplingMode::kUserDefined; })
      .help(
          "How the sources of data.train share an epoch. user_defined: by their `weight`; proportional: every image "
          "once; uniform: every source as often, in as many images as all have.");
  s.field("validation_fold", data.validation_fold)
      .range(-1, 1e6)
      .written_when([&data] { return data.validation_fold >= 0; })
      .help(
          "Number, from 0, of the part of data.train that validates, in place of data.val, and is not trained with. "
          "The files of the format tfrecord name theirs; of other formats, `folds` of the source says how many parts "
          "there are. -1: none.");
  s.rule("validation_fold", [&data] {
    return data.validation_fold >= 0 && !data.val.empty()
               ? "is given, and data.val, too; validation images come from one of both"
               : "";
  });
  s.rule("sampling_mode", [&data]() -> std::string {
    if (data.sampling == SamplingMode::kUserDefined) return "";
    const bool weighted =
        std::any_of(data.train.begin(), data.train.end(), [](const auto& s) { return s.weight != 1; });
    return weighted ? "does not look at the weights of the sources, and data.train has some; user_defined does" : "";
  });
  s.rule("target_class_mapping", [&data]() -> std::string {
    if (data.classes.target_classes.empty() || data.classes.targets.empty()) return "";
    for (const auto& entry : data.classes.targets)
      if (std::find(data.classes.target_classes.begin(), data.classes.target_classes.end(), entry.second) !=
          data.classes.target_classes.end())
        return "";
    return "maps to none of data.target_classes";
  });
  s.field("preset", data.preset)
      .written_when([&data] { return data.preset != InputPreset::kNone; })
      .known_elsewhere_as({"preprocess_mode", "preprocess_input", "preprocessing_name"})
      .help(
          "What a library does to images before its networks see them, in evaluation: resize, interpolation, "
          "central_fraction, color_order, mean and std of docs/data.md. Each of these keys that is given wins over "
          "it.");
  s.field("mean", data.transform.mean)
      // The first key that a preset sets.
      .starting_from("`preset`", [&data] { apply(data.preset, data.transform); })
      .range(-1000, 1000)
      .length(1, 64)
      .or_auto(data.auto_mean)
      .unit("of pixels in [0, 1]")
      .help(
          "Subtracted from every pixel; one value, or one for each channel in the order of color_order. auto: that of "
          "the images that `model.arch` is usually trained with, ImageNet's or CIFAR-10's.");
  s.field("std", data.transform.std)
      .above(0, 1000)
      .length(1, 64)
      .or_auto(data.auto_std)
      .unit("of pixels in [0, 1]")
      .help("Every pixel is divided by it after the mean is subtracted. auto: as for mean.");
  s.rule("mean", [&data] { return impossible_mean(data.transform.mean); });
  s.field("color_order", data.transform.order)
      .written_when([&data] { return data.preset != InputPreset::kNone || data.transform.order != ChannelOrder::kRgb; })
      .known_elsewhere_as({"channel_order", "input_type"})
      .help("Order of the channels that the network sees; bgr is that of Caffe and of what was converted from it.");
  s.field("exif_orientation", data.exif_orientation)
      .known_elsewhere_as({"exif_transpose", "auto_orient"})
      .help(
          "Turn JPEG, PNG and WebP files as the EXIF tag Orientation says; without it they are read as they are "
          "stored, as "
          "Pillow and torchvision read them.");
  s.field("resize", data.transform.resize)
      .range(0, 16'384)
      .unit("pixels")
      .help("Length of the shorter side before the center crop of evaluation; 0: resize straight to the input size.");
  s.field("interpolation", data.transform.interpolation)
      .written_when([&data] {
        return data.preset != InputPreset::kNone || data.transform.interpolation != Interpolation::kAntialias;
      })
      .help(
          "How images are resized. antialias: every pixel counts where they shrink, as Pillow and torchvision; "
          "bilinear: "
          "of four pixels each, as tf.image.resize and OpenCV; tensorflow1: of the pixels that TensorFlow 1 and "
          "TF-slim "
          "took. Images that are rotated, zoomed or scaled by preprocessing keep a way of their own.");
  s.field("central_fraction", data.transform.central_fraction)
      .above(0, 1)
      .unit("of height and width")
      .written_when([&data] { return data.preset != InputPreset::kNone || data.transform.central_fraction != 1; })
      .help("Middle part of the image that is resized straight to the input size.");
  s.rule("central_fraction", [&transform = data.transform] {
    if (transform.central_fraction == 1) return "";
    if (transform.preprocessing && transform.preprocessing->moves_pixels())
      return "does not go with preprocessing, which cuts or scales";
    return transform.resize > 0 ? "does not go with resize, which cuts from the middle, too; give one of them" : "";
  });
  s.section("preprocessing", data.transform.preprocessing)
      .help("Which part of every image the network sees, and in what size, as in TAO; absent: all of it, resized.");
  s.rule("preprocessing", [&transform = data.transform, &cut = data.random_resized_crop] {
    if (!transform.preprocessing || !transform.preprocessing->moves_pixels()) return "";
    return transform.resize > 0 || cut ? "cuts or scales, which does not go with resize or augment.random_resized_crop"
                                       : "";
  });
  s.section("augment",
            [&](schema::Section& augment) {
              augment.field("crop_padding", data.transform.crop_padding)
                  .range(0, 256)
                  .unit("pixels")
                  .help("Pad with black on each side, then crop the input size at random.");
              augment.field("flip", data.transform.flip)
                  .known_elsewhere_as({"hflip", "horizontal_flip"})
                  .help("Mirror left-right with probability 1/2.");
              augment.field("random_resized_crop", data.random_resized_crop)
                  .help("Crop a random area and aspect ratio, resized to the input (ImageNet's usual augmentation).");
              augment.field("scale", data.transform.scale)
                  .above(0, 1)
                  .length(2, 2)
                  .unit("share of the area")
                  .help("Smallest and largest area of random_resized_crop.");
              augment.field("ratio", data.transform.ratio)
                  .above(0, 100)
                  .length(2, 2)
                  .unit("width / height")
                  .help("Narrowest and widest shape of random_resized_crop.");
              augment.section("color", data.transform.color)
                  .known_elsewhere_as({"color_jitter", "photometric"})
                  .help("Change colors, each image by numbers of its own, before it is normalized.");
              augment.section("spatial_augmentation", data.transform.spatial)
                  .known_elsewhere_as({"spatial", "affine", "random_affine"})
                  .help(
                      "Mirror, rotate, zoom and move each image by numbers of its own, in this order, through one "
                      "matrix, as TAO; black where the image ends. Boxes go through their four corners.");
              augment.section("color_augmentation", data.transform.color_augmentation)
                  .help("Colors as TAO changes them, in place of color.");
              augment.field("tao_compatible", data.transform.tao_compatible)
                  .written_when([&data] { return data.transform.tao_compatible; })
                  .help(
                      "As TAO does it: rotated boxes go through two of their corners, vflip_probability and "
                      "rotate_probability are not used, and preprocessing scales before it crops.");
              augment.rule("color_augmentation", [&transform = data.transform] {
                return transform.color && transform.color_augmentation ? "does not go with color; name one of them"
                                                                       : "";
              });
              augment.rule("scale", [&scale = data.transform.scale] {
                return scale[0] > scale[1] ? "must be [smallest, largest]" : "";
              });
              augment.rule("ratio", [&ratio = data.transform.ratio] {
                return ratio[0] > ratio[1] ? "must be [narrowest, widest]" : "";
              });
            })
      .known_elsewhere_as({"augmentation", "augmentation_config", "transforms"})
      .help("Random changes of training images.");
  s.field("threads", data.threads)
      .range(0, 1024)
      .known_elsewhere_as({"workers", "num_workers", "n_workers"})
      .help("Threads that decode and augment; 0: as many as CPUs. Batches do not depend on it.");
  s.field("cache_mb", data.cache_mb)
      .range(0, 1e9)
      .unit("MiB")
      .written_when([&data] { return data.cache_mb != DataOptions().cache_mb; })
      .known_elsewhere_as({"cache", "cache_images"})
      .help(
          "Memory for decoded images that training reads again in later epochs, but at most half of what the system "
          "has "
          "left; 0: none. Images of idx and cifar are in memory anyway. Batches do not depend on it.");
  s.field("seed", data.seed).range(0, 9e15).help("Seed of order and augmentation.");
}

std::string paths_of(const Sources& sources) {
  std::vector<std::string> paths;
  for (const DatasetOptions& source : sources) paths.push_back(source.path.string());
  return schema::join(paths, ", ");
}

Sources DataOptions::folded(Sources sources, bool others) const {
  if (validation_fold >= 0)
    for (DatasetOptions& source : sources) {
      source.fold = FoldChoice{.fold = validation_fold, .others = others};
      if (!others) source.weight = 1;  // of training
    }
  return sources;
}

void resolve_splits(DataOptions& data) {
  const auto resolve = [](Sources& sources, const char* split) {
    for (DatasetOptions& source : sources) {
      if (source.split == "auto") source.split.clear();
      if (source.split.empty() && dataset_format(source.format).fixed_splits) source.split = split;
    }
  };
  resolve(data.train, "train");
  resolve(data.calibration, "train");
  resolve(data.val, "test");
  resolve(data.test, "test");
}

TransformOptions training_transform(const DataOptions& data, int64_t height, int64_t width) {
  TransformOptions transform = data.transform;
  transform.height = static_cast<int>(height);
  transform.width = static_cast<int>(width);
  transform.mode = data.random_resized_crop ? ResizeMode::kRandomResizedCrop
                   : transform.resize > 0   ? ResizeMode::kCenterCrop
                                            : ResizeMode::kStretch;
  return transform;
}

ClipRule clip_rule(const DataOptions& data) {
  if (!data.transform.preprocessing) return {};
  const PreprocessingOptions& p = *data.transform.preprocessing;
  return {.min_visible = static_cast<float>(p.min_visibility),
          .min_width = static_cast<float>(p.min_bbox_width),
          .min_height = static_cast<float>(p.min_bbox_height)};
}

std::vector<std::string> training_class_names(const DataOptions& data) {
  if (!data.classes.empty()) return data.classes.names();
  std::vector<SourceClasses> classes;
  for (const DatasetOptions& source : data.train) classes.push_back({source.path.string(), read_class_names(source)});
  return united_class_names(classes);
}

namespace {

// "0.485,0.456,0.406"
std::string listed(const std::vector<double>& values, double divisor) {
  std::vector<std::string> parts;
  for (const double value : values) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value / divisor);
    parts.push_back(text);
  }
  return schema::join(parts, ",");
}

}  // namespace

std::string impossible_mean(const std::vector<double>& mean) {
  if (std::all_of(mean.begin(), mean.end(), [](double m) { return std::abs(m) <= kLargestMean; })) return "";
  return str("is ", listed(mean, 1),
             ", of pixels of 0 .. 255, but pixels are 0 .. 1 here; divide mean and std by 255 (", listed(mean, 255),
             ")");
}

std::string doubtful_normalization(const TransformOptions& transform) {
  const auto beyond = [](const std::vector<double>& values, double low, double high) {
    return std::any_of(values.begin(), values.end(), [&](double v) { return v < low || v > high; });
  };
  const std::string given = "mean " + listed(transform.mean, 1) + " and std " + listed(transform.std, 1);
  // The deviation of numbers from 0 to 1 is at most 0.5; more than 1 squeezes the input.
  if (beyond(transform.mean, -1e300, 1) || beyond(transform.std, 0, 1))
    return given +
           ": these look like values for pixels of 0 .. 255, but pixels are 0 .. 1 here; divide them by 255 (mean " +
           listed(transform.mean, 255) + ", std " + listed(transform.std, 255) + ")";
  if (beyond(transform.mean, 0, 1)) return given + ": the mean lies outside of 0 .. 1, the range of the pixels";
  return "";
}

}  // namespace octet::data
