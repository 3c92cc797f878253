// octet infer: predictions for images that need no labels.
#include <CLI/App.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/detection_files.h"
#include "app/experiment_data.h"
#include "app/image_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/json_output.h"
#include "cli/model_flags.h"
#include "cli/open_model.h"
#include "metrics/top_k.h"
#include "report/progress.h"

namespace octet::cli {
namespace {

struct InferOptions {
  SpecFlags spec;
  ModelFlags input;
  std::string model, json, isa, results, draw, kitti, coco, coco_annotations;
  std::vector<std::string> images;
  int64_t batch_size = 0, threads = 0;
  int top = 5;
  double min_score = 0.5;
  bool min_score_given = false, force = false;

  bool writes_objects() const { return !draw.empty() || !kitti.empty() || !coco.empty(); }
  // In files for programs, which choose themselves, is everything unless something else is said.
  double min_score_of_files() const { return min_score_given ? min_score : -1; }
};

// -r stands for the folders that TAO's inference writes, as far as the experiment wants them; other flags name others.
void name_results(InferOptions& options, const spec::ExperimentSpec& spec) {
  if (options.results.empty()) return;
  const std::filesystem::path results = options.results;
  if (options.draw.empty() && spec.infer.draw) options.draw = results / "images_annotated";
  if (options.kitti.empty() && spec.infer.kitti) options.kitti = results / "labels";
  if (!options.writes_objects())
    fail_usage("-r ", options.results,
               " would stay empty: the experiment says infer.draw: false and infer.kitti: false, ",
               "and no other file is named");
}

app::DetectionOutputs outputs_of(const InferOptions& options) {
  app::DetectionOutputs outputs{
      .pictures = options.draw, .kitti = options.kitti, .coco = options.coco, .ids = {}, .replace = options.force};
  if (!options.coco.empty()) require_writable_output(options.coco, options.force);
  if (!options.coco_annotations.empty())
    outputs.ids = app::parse_coco_ids(read_file(options.coco_annotations), options.coco_annotations);
  return outputs;
}

using nlohmann::ordered_json;

// Prints a prediction and says it as JSON.
class Teller {
 public:
  Teller(const InferOptions& options, const std::vector<std::string>& names, const data::Dataset& images)
      : options_(options), names_(names), images_(images), files_(outputs_of(options), names, images) {}

  void tell(const tasks::Prediction& prediction, const data::Batch& batch, size_t image) {
    const int64_t index = batch.indices[image];
    line_ = images_.name(index);
    json_ = {{"image", line_}};
    if (const auto* scores = std::get_if<tasks::ClassScores>(&prediction)) {
      if (options_.writes_objects())
        fail_usage("-r, --draw, --kitti and --coco are of detectors; the network predicts classes (--json has them)");
      tell_classes(*scores);
    }
    if (const auto* objects = std::get_if<tasks::Objects>(&prediction))
      tell_objects(*objects, batch.geometry.at(image), index);
    if (options_.json != "-") std::cout << printable_line(line_) << '\n';
    predictions.push_back(json_);
  }

  void finish() const { files_.finish(); }

  ordered_json predictions = ordered_json::array();

 private:
  std::string class_name(int c) const {
    return static_cast<size_t>(c) < names_.size() ? names_[static_cast<size_t>(c)] : std::to_string(c);
  }
  void tell_classes(const tasks::ClassScores& scores) {
    json_["class"] = metrics::top_1(scores.probabilities);
    ordered_json top = ordered_json::array();
    for (int c : metrics::top_k(scores.probabilities,
                                std::min<int>(options_.top, static_cast<int>(scores.probabilities.size())))) {
      const double p = scores.probabilities[static_cast<size_t>(c)];
      char text[64];
      std::snprintf(text, sizeof text, " %.4f", p);
      line_ += "  " + class_name(c) + text;
      top.push_back({{"class", c}, {"name", class_name(c)}, {"probability", p}});
    }
    json_["top"] = top;
  }
  void tell_objects(const tasks::Objects& objects, const data::Geometry& geometry, int64_t index) {
    ordered_json list = ordered_json::array();
    tasks::Objects written;
    for (vision::Object object : objects) {
      object.box = geometry.to_image(object.box);
      if (object.score >= options_.min_score_of_files()) written.push_back(object);
      if (object.score < options_.min_score) continue;
      const vision::Box& b = object.box;
      char text[128];
      std::snprintf(text, sizeof text, " %.2f [%.0f %.0f %.0f %.0f]", object.score, b.x0, b.y0, b.x1, b.y1);
      line_ += "  " + class_name(object.label) + text;
      list.push_back({{"class", object.label},
                      {"name", class_name(object.label)},
                      {"score", object.score},
                      {"box", {b.x0, b.y0, b.x1, b.y1}}});
    }
    json_["objects"] = list;
    files_.add(index, written, options_.min_score);
  }

  const InferOptions& options_;
  std::vector<std::string> names_;
  const data::Dataset& images_;
  app::DetectionFiles files_;
  std::string line_;
  ordered_json json_;
};

ExitCode run_infer(InferOptions& options) {
  require_file(options.model, "-m");
  if (options.images.empty() && options.spec.path.empty() && options.spec.overrides.empty())
    fail_usage("name the images: octet infer -m ", options.model, " photo.jpg folder/");
  app::ModelFile file = app::read_model_file(options.model, options.spec.input_shapes(options.model));
  spec::ExperimentSpec spec = experiment_to_run(options.spec, options.input, file);
  name_results(options, spec);
  const std::unique_ptr<app::Model> model =
      open_model(file, *spec.task, {.threads = options.threads, .isa = options.isa, .input = spec.model.input});
  const int64_t batch_size = model->batch_size() > 0 ? model->batch_size() : options.batch_size;
  app::DataStream stream = options.images.empty()
                               ? app::open_evaluation_data(spec, batch_size, model->class_names())
                               : app::open_image_files(spec, options.images, model->input_shape(), batch_size);
  const std::vector<std::string> classes =
      model->class_names().empty() ? app::training_class_names(spec) : model->class_names();
  spec.task->name_classes(classes);
  Teller teller(options, classes, *stream.dataset);
  report::Progress progress({.label = "infer", .total = stream.loader->images_per_epoch()});
  tasks::run_all(
      *model, *stream.loader,
      [&](const tasks::Outputs& outputs, const data::Batch& batch) {
        const std::vector<tasks::Prediction> predictions = spec.task->decode(outputs, batch);
        for (size_t i = 0; i < predictions.size(); ++i) teller.tell(predictions[i], batch, i);
      },
      [&](int64_t done) { progress.update(done); });
  progress.finish();
  for (const auto& [index, entry] : stream.loader->corrupt().entries)
    log_warning("skipped the damaged image ", entry.name, ": ", entry.reason);
  teller.finish();
  if (!options.json.empty())
    write_json_output(
        options.json,
        {{"model", options.model}, {"ran_as", model->description()}, {"predictions", std::move(teller.predictions)}});
  return ExitCode::kDone;
}

}  // namespace

Command infer_command() {
  return {
      .name = "infer",
      .summary = "Predict the classes of images, or the objects in them",
      .details =
          "Images are files or folders; without any, the test images of an experiment (-e) are taken. Prints one line "
          "an image: the best classes with their probabilities, or objects with score and box in pixels of the image, "
          "which can also be drawn and written as KITTI's and COCO's tools read them. Names, normalization and the "
          "way of resizing are those that the model carries (octet inspect shows them; docs/metadata.md); flags or an "
          "experiment say what a model of another program does not.",
      .examples = {"octet infer -m results/model.octet cat.jpg photos/",
                   "octet infer -m resnet50.onnx cat.jpg --preset torchvision --classes imagenet.txt",
                   "octet infer -e SPEC.yaml -m results/model.octet --json predictions.json",
                   "octet infer -m results/model.octet photos/ --draw drawn --kitti labels --coco coco.json",
                   "octet infer -e inference.txt -m results/model.octet -i photos -r results/inference"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<InferOptions>();
        app.add_option("-i,--image_dir,IMAGES", options->images, "Image files or folders of images");
        add_model_flag(app, options->model, "ONNX or .octet file");
        add_optional_spec_flags(app, options->spec);
        add_model_flags(app, options->input);
        add_input_shape_flag(app, options->spec);
        app.add_option("--top", options->top, "Classes to show for each image")
            ->check(CLI::Range(1, 1000))
            ->capture_default_str();
        add_results_flag(app, options->results, Need::kOptional)
            ->description(
                "Detectors: folder for images_annotated/ and labels/, as TAO's inference writes them; infer.draw "
                "and infer.kitti of the experiment take one out");
        app.add_option("--draw", options->draw, "Detectors: folder for pictures with the boxes drawn in")
            ->type_name("FOLDER");
        app.add_option("--kitti", options->kitti,
                       "Detectors: folder for KITTI's label files with scores, one for each image")
            ->type_name("FOLDER");
        add_written_file_flag(app, "--coco", options->coco, "Detectors: file for results as COCO's tools read them");
        app.add_option(
               "--coco_annotations", options->coco_annotations,
               "COCO's annotations of the images, which have the ids of images and classes; without them the id "
               "of an image is the number that its file is called, or its place, and classes count from 1")
            ->type_name("FILE")
            ->needs("--coco");
        add_number_flag(app, "--min_score", options->min_score, 0, 1e6,
                        "Detectors: least score of what is shown, and, if given, of what KITTI's and COCO's files have")
            ->capture_default_str()
            ->each([options](const std::string&) { options->min_score_given = true; });
        app.add_flag("--force", options->force, "Replace KITTI's and COCO's files that exist");
        add_exif_flag(app, options->spec);
        add_json_flag(app, options->json);
        add_batch_size_flag(app, options->batch_size);
        add_threads_flag(app, options->threads);
        add_isa_flag(app, options->isa);
        return [options] { return run_infer(*options); };
      }};
}

}  // namespace octet::cli
