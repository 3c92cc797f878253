// octet convert images: images with a class as ImageNet's TFRecords.
#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/key_flags.h"
#include "data/image_records.h"
#include "report/progress.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

struct ConvertImagesOptions {
  KeyFlags keys;
  std::string output;
  bool force = false;
};

constexpr KeyFlag kImageKeyFlags[] = {
    {"--format", "source.format", "image_folder|idx|cifar10|cifar100|imagenet_tfrecord", "Of the data set"},
    {"--path", "source.path", "PATH", "Of the data set"},
    {"--split", "source.split", "NAME", "Sub-folder of an image_folder; idx and cifar: train or test"},
    {"--num_shards,--shards", "num_shards", "N", "Files; 0: one for every 1,250 images"},
    {"--label_offset", "label_offset", "N", "Label of the first class: 1 as TF-slim, 0 as Keras"},
    {"--text_of_synset", "text_of_synset", "FILE", "Lines of a class and its text: n01440764 tench, Tinca tinca"},
    {"--shuffle", "shuffle", "true|false", "Images in random order, or in that of the data set"},
    {"--seed", "seed", "N", "Of the random order"},
};

// The files that are to be replaced.
std::vector<fs::path> check_output(const ConvertImagesOptions& options) {
  const fs::path name = options.output;
  if (name.filename().empty() || fs::is_directory(name))
    fail_usage("-o ", options.output, ": names a folder; give the beginning of the files' names, as in ",
               (name / "train").string());
  std::vector<fs::path> earlier = data::earlier_shards(name);
  if (!earlier.empty() && !options.force)
    fail_usage("-o ", options.output, ": ", earlier.size(), earlier.size() == 1 ? " file" : " files",
               " of that name are there, as ", earlier[0].string(), "; add --force to replace them");
  for (const fs::path& file : earlier) guard_output(file, "-o");  // a set is not replaced by what is read from it
  make_results_directory(name.has_parent_path() ? name.parent_path() : fs::path("."));
  return earlier;
}

ExitCode run_convert_images(const ConvertImagesOptions& options) {
  auto conversion = options.keys.load<data::ImageRecordOptions>();
  std::vector<fs::path> earlier = check_output(options);
  // An experiment chooses by what it reads images for.
  if (conversion.source.split == "auto") conversion.source.split.clear();
  const std::unique_ptr<data::Dataset> dataset = data::open_dataset(conversion.source);
  for (const std::string& sentence : dataset->findings().sentences()) log_warning(sentence);
  report::Progress progress({.label = "convert", .total = dataset->size()});
  const data::WrittenRecords written =
      data::write_image_records(*dataset, conversion, options.output, [&](int64_t done) { progress.update(done); });
  progress.finish();
  for (const std::string& sentence : written.findings.sentences()) log_warning(sentence);
  // Shards of an earlier run beside the new ones would be those of another set.
  for (const fs::path& file : written.files) std::erase(earlier, file);
  for (const fs::path& file : earlier) fs::remove(file);
  const auto classes = std::count_if(written.of_class.begin(), written.of_class.end(), [](int64_t n) { return n > 0; });
  std::cout << printable_line(str(written.images, " images of ", classes, " classes in ", written.files.size(),
                                  written.files.size() == 1 ? " file" : " files", ", labels from ",
                                  conversion.label_offset, " on"))
            << '\n';
  return ExitCode::kDone;
}

}  // namespace

Command convert_images_command() {
  return {
      .name = "images",
      .summary = "Write images with a class as ImageNet's TFRecords",
      .details =
          "Reads a folder of images for each class, or another data set of images with a class, and writes "
          "NAME-00000-of-00008 and so on: TFRecords with the features image/encoded, image/class/label, "
          "image/class/synset and image/class/text, as TF-slim's and the TensorFlow models' readers of ImageNet "
          "take them, and data sources of the format imagenet_tfrecord. JPEG and PNG files are copied as they are. "
          "SPEC has the keys source, num_shards, label_offset, shuffle, seed and text_of_synset; flags go before "
          "it. The same options give the same files.",
      .examples = {"octet convert images --format image_folder --path imagenet/train --shards 1024 -o records/train",
                   "octet convert images --format cifar10 --path cifar-10-batches-bin --split test "
                   "--label_offset 0 -o records/test"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<ConvertImagesOptions>();
        add_key_flags(app, options->keys, "-d,--dataset-export-spec,spec", kImageKeyFlags);
        app.add_option("-o,--output", options->output, "Beginning of the files' names, with their folder")
            ->required()
            ->type_name("NAME");
        app.add_flag("--force", options->force, "Replace files of that name");
        return [options] { return run_convert_images(*options); };
      }};
}

}  // namespace octet::cli
