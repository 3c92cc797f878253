// octet scenes: a first data set for detectors, made of labeled pictures.
#include <CLI/App.hpp>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "data/class_order.h"
#include "data/dataset.h"
#include "data/scene_files.h"
#include "report/progress.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

struct ScenesOptions {
  std::string pictures, pictures_format = "idx", output, format = "voc";
  std::vector<std::string> names;
  int64_t train = 1000, test = 250, width = 320, height = 192, seed = 0, clutter = 0;
  std::vector<int> objects = {1, 6}, sides = {28, 88};
  float max_overlap = data::SceneOptions().max_overlap, min_seen = 0;
  bool textured = false, masks = false;
};

ExitCode run_scenes(const ScenesOptions& options) {
  std::error_code error;
  if (fs::exists(options.output, error) &&
      !(fs::is_directory(options.output, error) && fs::is_empty(options.output, error)))
    fail_usage("-o ", options.output, ": is there already and not an empty folder; name another one");
  make_results_directory(options.output);
  const auto format = schema::parse_enum<data::SceneFormat>("--format", options.format);
  const data::SceneOptions scene{
      .width = static_cast<int>(options.width),
      .height = static_cast<int>(options.height),
      .min_objects = options.objects.at(0),
      .max_objects = options.objects.at(1),
      .min_side = options.sides.at(0),
      .max_side = static_cast<int>(std::min({int64_t{options.sides.at(1)}, options.width, options.height})),
      .max_overlap = options.max_overlap,
      .min_seen = options.min_seen,
      .textured = options.textured,
      .clutter = static_cast<int>(options.clutter),
      .masks = options.masks,
      .seed = static_cast<uint64_t>(options.seed)};
  report::Progress progress({.label = "scenes", .total = options.train + options.test});
  int64_t done = 0;
  // Objects of a test scene are seen in none that is learned from.
  for (const auto& [split, count] :
       {std::pair{std::string("train"), options.train}, {std::string("test"), options.test}}) {
    std::unique_ptr<data::Dataset> pictures =
        data::open_dataset({.format = options.pictures_format, .path = options.pictures, .split = split});
    if (!options.names.empty()) pictures = data::rename_classes(std::move(pictures), options.names);
    data::write_scenes(*pictures, scene, format, {{split, count}}, options.output, done,
                       [&](int64_t n) { progress.update(done + n); });
    done += count;
  }
  progress.finish();
  log_info("wrote ", options.train, " scenes to learn from and ", options.test, " to test with to ", options.output);
  return ExitCode::kDone;
}

}  // namespace

Command scenes_command() {
  return {
      .name = "scenes",
      .summary = "Make a data set for detectors out of labeled pictures",
      .details =
          "Pastes pictures of a labeled data set, such as Fashion-MNIST, at random places, sizes and tints onto "
          "colored grounds, and writes the scenes as a Pascal VOC, KITTI or COCO folder with the splits train and "
          "test: "
          "a first data set with exact boxes and masks where none is at hand. Objects of the test scenes come from the "
          "pictures' own test split. The same options give the same files.",
      .examples = {"octet scenes --pictures /usr/share/datasets/fashion-mnist "
                   "--names top,trousers,top,dress,top,shoe,top,shoe,bag,shoe -o scenes",
                   "octet scenes --pictures /usr/share/datasets/fashion-mnist --format kitti --width 960 --height 544 "
                   "--textured --clutter 12 --objects 2,12 --sides 32,220 --max-overlap 0.3 --min-seen 0.5 -o scenes"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<ScenesOptions>();
        app.add_option("--pictures", options->pictures, "Labeled data set with the splits train and test")
            ->required()
            ->type_name("PATH");
        app.add_option("--pictures-format", options->pictures_format,
                       "Of the pictures: a format of `octet spec data.train`")
            ->capture_default_str();
        app.add_option("--names", options->names,
                       "Names of the pictures' classes in order; equal ones become one class")
            ->delimiter(',')
            ->type_name("NAME,NAME,...");
        app.add_option("-o,--output", options->output, "Folder to write, new or empty")->required();
        add_number_flag(app, "--train", options->train, 1, 1'000'000, "Scenes to learn from")->capture_default_str();
        add_number_flag(app, "--test", options->test, 1, 1'000'000, "Scenes to test with")->capture_default_str();
        add_number_flag(app, "--width", options->width, 32, 16384, "Of a scene, pixels")->capture_default_str();
        add_number_flag(app, "--height", options->height, 32, 16384, "Of a scene, pixels")->capture_default_str();
        limit_to<data::SceneFormat>(app.add_option("--format", options->format, "Of the scenes"))
            ->capture_default_str();
        app.add_flag("--masks", options->masks, "Write the objects' masks, too, as gray PNG files");
        app.add_flag("--textured", options->textured, "Stripes, tiles, rings and clouds on the ground");
        add_number_flag(app, "--clutter", options->clutter, 0, 1000,
                        "Most shapes behind the objects of a scene that are nothing to be found")
            ->capture_default_str();
        app.add_option("--objects", options->objects, "Fewest and most objects of a scene")
            ->delimiter(',')
            ->expected(2)
            ->type_name("LEAST,MOST")
            ->capture_default_str();
        app.add_option("--sides", options->sides, "Sides of an object's picture in a scene, pixels")
            ->delimiter(',')
            ->expected(2)
            ->type_name("LEAST,MOST")
            ->capture_default_str();
        app.add_option("--max-overlap", options->max_overlap, "Greatest intersection over union of two pictures")
            ->capture_default_str();
        app.add_option("--min-seen", options->min_seen, "Share of an object that others leave to be seen")
            ->capture_default_str();
        add_number_flag(app, "--seed", options->seed, 0, 1'000'000'000, "Other scenes")->capture_default_str();
        return [options] { return run_scenes(*options); };
      }};
}

}  // namespace octet::cli
