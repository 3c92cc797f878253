// octet convert dataset: annotated images as TFRecords in TAO's layout.
#include <CLI/App.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/key_flags.h"
#include "data/objects/conversion.h"
#include "report/progress.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

struct ConvertDatasetOptions {
  KeyFlags keys;
  std::string output;
  bool force = false;
};

constexpr KeyFlag kDatasetKeyFlags[] = {
    {"--format", "source.format", "kitti|voc|coco|tfrecord", "Of the data set"},
    {"--path", "source.path", "FOLDER", "Of the data set, from which the ids of the records lead to the images"},
    {"--labels", "source.labels", "PATH", "coco: JSON file; kitti and voc: folder, where it is not the usual one"},
    {"--split", "source.split", "NAME", "voc: list of images; coco and kitti: sub-folder"},
    {"--partition_mode", "partition_mode", "random|sequence", "How images come into partitions"},
    {"--num_partitions", "num_partitions", "N", "Parts, one of which may validate"},
    {"--val_split", "val_split", "PERCENT", "Images of the first of two random partitions"},
    {"--num_shards", "num_shards", "N", "Files of each partition"},
    {"--seed", "seed", "N", "Of the random order"},
};

// The files that are to be replaced.
std::vector<fs::path> check_output(const ConvertDatasetOptions& options) {
  const fs::path name = options.output;
  if (name.filename().empty() || fs::is_directory(name))
    fail_usage("-o ", options.output, ": names a folder; give the beginning of the files' names, as in ",
               (name / "train").string());
  std::vector<fs::path> earlier = data::earlier_records(name);
  if (!earlier.empty() && !options.force)
    fail_usage("-o ", options.output, ": ", earlier.size(), earlier.size() == 1 ? " file" : " files",
               " of that name are there, as ", earlier[0].string(), "; add --force to replace them");
  make_results_directory(name.has_parent_path() ? name.parent_path() : fs::path("."));
  return earlier;
}

ExitCode run_convert_dataset(const ConvertDatasetOptions& options) {
  const auto conversion = options.keys.load<data::ConversionOptions>();
  std::vector<fs::path> earlier = check_output(options);
  data::AnnotatedSet set = data::read_objects(conversion.source);
  data::drop_unusable(set, conversion.source.exif_orientation, conversion.source.path.string());
  if (conversion.source.lower_case_classes) data::lower_classes(set);
  for (const std::string& sentence : set.findings.sentences()) log_warning(sentence);
  report::Progress progress({.label = "convert", .total = static_cast<int64_t>(set.images.size())});
  const std::vector<data::WrittenPartition> partitions =
      data::write_tfrecords(set, conversion, options.output, [&](int64_t done) { progress.update(done); });
  progress.finish();
  // Shards of an earlier run beside the new ones would have every image twice.
  for (const data::WrittenPartition& part : partitions)
    for (const fs::path& file : part.files) std::erase(earlier, file);
  for (const fs::path& file : earlier) fs::remove(file);
  for (size_t fold = 0; fold < partitions.size(); ++fold) {
    const data::WrittenPartition& part = partitions[fold];
    std::string objects;
    for (const auto& [name, count] : part.objects) objects += str(objects.empty() ? "" : ", ", name, ' ', count);
    std::cout << printable_line(str("fold ", fold, " of ", partitions.size(), ": ", part.images, " images in ",
                                    part.files.size(), " files, objects: ", objects.empty() ? "none" : objects))
              << '\n';
    if (part.images == 0)
      log_warning("fold ", fold, " is empty and has no file; data.validation_fold: ", fold, " would find nothing");
  }
  return ExitCode::kDone;
}

}  // namespace

Command convert_dataset_command() {
  return {.name = "dataset",
          .summary = "Write annotated images as TFRecords in TAO's layout",
          .details =
              "Reads the objects of a KITTI, Pascal VOC or COCO data set and writes TFRecords with the keys of TAO's "
              "DetectNet_v2, NAME-fold-000-of-002-shard-00000-of-00010 and so on, which data sources of the format "
              "tfrecord read. Images stay where they are. SPEC has the keys source, partition_mode, num_partitions, "
              "val_split, num_shards, kitti_sequence_to_frames_file and seed; flags go before it. What cannot be used "
              "is counted and left out. The same options give the same files.",
          .examples = {"octet convert dataset --format kitti --path kitti/training --val_split 14 -o tfrecords/kitti",
                       "octet convert dataset -d convert.yaml -o tfrecords/kitti"},
          .define = [](CLI::App& app) -> Run {
            auto options = std::make_shared<ConvertDatasetOptions>();
            add_key_flags(app, options->keys, "-d,--dataset-export-spec,spec", kDatasetKeyFlags);
            app.add_option("-o,--output", options->output, "Beginning of the files' names, with their folder")
                ->required()
                ->type_name("NAME");
            app.add_flag("--force", options->force, "Replace files of that name");
            return [options] { return run_convert_dataset(*options); };
          }};
}

}  // namespace octet::cli
