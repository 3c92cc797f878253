#include "spec/folder.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "data/dataset.h"
#include "models/zoo.h"
#include "schema/schema.h"
#include "schema/tree.h"

namespace octet::spec {
namespace {

namespace fs = std::filesystem;

// What one use of the images takes: the keys of its section.
using Source = std::vector<std::pair<std::string, std::string>>;

struct Found {
  Source train, val, test;  // empty: none
  std::string what;         // "the folders train, val and test"
  int64_t images = 0;       // of train
  bool small = false;       // of MNIST's and CIFAR's kind
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> out;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      if (entry.is_directory() && !entry.path().filename().string().starts_with(".")) out.push_back(entry.path());
  } catch (const fs::filesystem_error& error) {
    fail_usage("--data ", folder.string(), ": cannot be read: ", error.code().message());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// The one folder that has one of these names, or none.
std::optional<fs::path> one_of(const std::vector<fs::path>& folders, const std::vector<std::string>& names) {
  std::optional<fs::path> found;
  for (const fs::path& folder : folders) {
    if (std::find(names.begin(), names.end(), lower(folder.filename().string())) == names.end()) continue;
    if (found)
      fail_usage("--data ", folder.parent_path().string(), ": has both ", found->filename().string(), "/ and ",
                 folder.filename().string(), "/, which mean the same; move one of them away");
    found = folder;
  }
  return found;
}

bool has_file(const fs::path& folder, std::initializer_list<const char*> names) {
  std::error_code ignored;
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return fs::is_regular_file(folder / name, ignored); });
}

// Sets of images with objects in them, which need a task of their own.
void refuse_objects(const fs::path& folder, const std::vector<fs::path>& folders) {
  const auto has = [](const std::vector<fs::path>& where, std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) { return one_of(where, {name}).has_value(); });
  };
  std::string format;
  if (has(folders, {"jpegimages", "annotations"})) format = "voc";
  if (has(folders, {"image_2", "label_2"})) format = "kitti";
  if (has_file(folder / "annotations", {"instances_train2017.json", "instances_train.json", "instances_default.json"}))
    format = "coco";
  std::vector<fs::path> inside = folders;
  if (const std::optional<fs::path> train = one_of(folders, {"train", "training"})) inside = folders_in(*train);
  const bool yolo = format.empty() && (has(folders, {"images", "labels"}) || has(inside, {"images", "labels"}));
  if (format.empty() && !yolo) return;
  fail_usage("--data ", folder.string(), ": holds images with objects (", yolo ? "images/ and labels/" : format,
             "), and --data takes one folder of images for each class; detectors are trained with a spec: task: "
             "detectnet_v2 and data.train: {format: ",
             yolo ? "kitti or another" : format, ", path: ...} (examples/detection, docs/data.md)");
}

Source image_folder(const fs::path& path) {
  return {{"format", "image_folder"}, {"path", path.string()}};
}

Found find_images(const fs::path& folder) {
  const auto fixed = [&](const std::string& format) {
    const auto split = [&](const char* name) {
      return Source{{"format", format}, {"path", folder.string()}, {"split", name}};
    };
    return Found{.train = split("train"), .test = split("test"), .what = format + " files", .small = true};
  };
  if (has_file(folder, {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz", "train-images.idx3-ubyte",
                        "train-images.idx3-ubyte.gz"}))
    return fixed("idx");
  if (has_file(folder, {"data_batch_1.bin"})) return fixed("cifar10");
  if (has_file(folder, {"train.bin"})) return fixed("cifar100");
  const std::vector<fs::path> folders = folders_in(folder);
  refuse_objects(folder, folders);
  const std::optional<fs::path> train = one_of(folders, {"train", "training"}),
                                val = one_of(folders, {"val", "valid", "validation"}),
                                test = one_of(folders, {"test", "testing"});
  if (!train && (val || test))
    fail_usage("--data ", folder.string(), ": has ", (val ? *val : *test).filename().string(),
               "/ but no train/ beside it");
  if (!train && folders.size() < 2)
    fail_usage("--data ", folder.string(), ": has neither train/ nor a sub-folder for each of two classes or more",
               folders.empty() ? "" : str(" (only ", folders[0].filename().string(), "/)"),
               "; images are sorted into folders named like their classes");
  if (!train)
    return {.train = image_folder(folder), .what = str(folders.size(), " class folders, without train/ and val/")};
  Found found{.train = image_folder(*train), .what = train->filename().string() + "/"};
  if (val) found.val = image_folder(*val), found.what += ", " + val->filename().string() + "/";
  if (test) found.test = image_folder(*test), found.what += ", " + test->filename().string() + "/";
  return found;
}

int64_t count_images(const Source& source) {
  data::DatasetOptions options;
  for (const auto& [key, value] : source) {
    if (key == "format") options.format = value;
    if (key == "path") options.path = value;
    if (key == "split") options.split = value;
  }
  return data::open_dataset(options)->size();
}

std::string section(const Source& source, const std::string& more = "") {
  std::string out;
  for (const auto& [key, value] : source) out += (out.empty() ? "" : ", ") + key + ": " + schema::yaml_text(value);
  return "{" + out + more + "}";
}

struct Schedule {
  int64_t batch, epochs;
  double lr;
};

// Eight steps an epoch where there are so many images; 1,500 steps or 100 epochs; 0.1 for 256 images as Goyal et al.
// 2017.
Schedule schedule_for(int64_t images) {
  Schedule s{.batch = 64, .epochs = 0, .lr = 0};
  while (s.batch > 4 && images / s.batch < 8) s.batch /= 2;
  s.batch = std::clamp<int64_t>(s.batch, 1, std::max<int64_t>(1, images));
  const int64_t steps = std::max<int64_t>(1, images / s.batch);
  s.epochs = std::clamp<int64_t>((1500 + steps - 1) / steps, 30, 100);
  s.lr = 0.1 * static_cast<double>(s.batch) / 256;
  return s;
}

}  // namespace

FolderExperiment experiment_of_folder(const fs::path& folder, const std::string& arch) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    fail_usage("--data ", folder.string(), ": is ", fs::exists(folder, ignored) ? "no folder" : "not there",
               "; it names the folder of the images");
  const int64_t side = models::default_options(arch).input[1];  // refuses an unknown network before images are counted
  Found found = find_images(folder);
  found.images = count_images(found.train);
  FolderExperiment out;
  std::string folds;
  int64_t training = found.images;
  if (found.val.empty()) {
    const int64_t parts = found.images >= 2000 ? 10 : 5;
    if (found.images < parts)
      fail_usage("--data ", folder.string(), ": has ", found.images, " training images, too few to hold some out; add ",
                 "images, or a folder val beside train");
    folds = str(", folds: ", parts);
    training -= (found.images + parts - 1) / parts;
    out.remarks.push_back(str(folder.string(), ": ", found.what, "; ", (found.images + parts - 1) / parts, " of the ",
                              found.images,
                              " training images, chosen by the names of their files, validate and are not trained with "
                              "(data.validation_fold)"));
  } else {
    out.remarks.push_back(str(folder.string(), ": ", found.what));
  }
  if (found.test.empty())
    out.remarks.push_back("there is no folder test: octet evaluate measures with the images that validate");
  const Schedule s = schedule_for(training);
  std::string& y = out.yaml;
  y = "# For the images of " + schema::yaml_text(folder.string()) +
      "; keys that are not here have their defaults (octet spec).\n";
  y += "task: classification\n\n";
  y += "# auto: as many classes as the images have; the size, mean and standard deviation that fit the network.\n";
  y += "model: {arch: " + arch + ", num_classes: auto, input: auto}\n\n";
  y += "data:\n";
  y += "  train: " + section(found.train, folds) + "\n";
  if (found.val.empty())
    y += "  validation_fold: 0  # of these parts, by the names of the files; not trained with\n";
  else
    y += "  val: " + section(found.val) + "\n";
  if (!found.test.empty()) y += "  test: " + section(found.test) + "\n";
  y += "  mean: auto\n  std: auto\n";
  // Flipping harms where left and right differ, as in digits: not of the small sets, which are known for them.
  if (found.small || side < 64) {
    y += str("  augment: {crop_padding: ", side / 8, found.small ? "" : ", flip: true", "}\n");
  } else {
    y += str("  resize: ", std::llround(static_cast<double>(side) * 256 / 224), "\n");
    y += "  augment: {random_resized_crop: true, scale: [0.35, 1], flip: true}\n";
  }
  if (y.find("flip: true") != std::string::npos) y += "  # flip: false where left and right differ, as in text\n";
  y += str("\ntrain:\n  epochs: ", s.epochs, "\n  batch_size_per_gpu: ", s.batch, "\n");
  y += "  precision: auto  # bf16 where the hardware has it, else fp32\n";
  y += "  optimizer: {type: sgd, lr: " + schema::number_text(s.lr) +
       ", momentum: 0.9, nesterov: true, weight_decay: 1e-4}  # a tenth of it for pretrained weights\n";
  y += "  schedule: {type: cosine, warmup: 0.05}\n";
  return out;
}

}  // namespace octet::spec
