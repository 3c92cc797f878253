// octet infer: predictions for images that need no labels.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/experiment_data.h"
#include "app/image_files.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "base/printable.h"
#include "cli/classifier.h"
#include "cli/commands.h"
#include "cli/flags.h"

namespace octet::cli {
namespace {

struct Options {
  SpecFlags spec;
  std::string model, json, isa;
  std::vector<std::string> images;
  int64_t batch_size = 0, threads = 0;
  int top = 1;
};

ExitCode run(const Options& options) {
  const spec::ExperimentSpec spec = options.spec.load();
  require_file(options.model, "-m");
  const std::unique_ptr<Classifier> model =
      open_classifier(options.model, {.threads = options.threads, .isa = options.isa});
  const int64_t batch = model->batch_size() > 0 ? model->batch_size() : options.batch_size;
  app::DataStream stream = options.images.empty()
                               ? app::open_evaluation_data(spec, batch, model->class_names())
                               : app::open_image_files(spec, options.images, model->input_shape(), batch);
  const Classification result = classify(*model, *stream.loader, 1, "infer");
  const auto classes = static_cast<size_t>(model->classes());
  const auto names = model->class_names().empty() ? app::training_class_names(spec) : model->class_names();
  const auto class_name = [&](int c) {
    return static_cast<size_t>(c) < names.size() ? names[static_cast<size_t>(c)] : std::to_string(c);
  };
  nlohmann::ordered_json predictions = nlohmann::ordered_json::array();
  for (size_t i = 0; i < result.predictions.size(); ++i) {
    const std::span<const float> scores(result.scores.data() + i * classes, classes);
    const std::string image = stream.dataset->name(result.indices[i]);
    nlohmann::ordered_json top = nlohmann::ordered_json::array();
    std::string line = image;
    for (int c : metrics::top_k(scores, std::min<int>(options.top, static_cast<int>(classes)))) {
      const double p = std::exp(metrics::log_probability(scores, model->score_kind(), c));
      char text[256];
      std::snprintf(text, sizeof text, "  %s %.4f", class_name(c).c_str(), p);
      line += text;
      top.push_back({{"class", c}, {"name", class_name(c)}, {"probability", p}});
    }
    if (options.json != "-") std::cout << printable_line(line) << '\n';
    predictions.push_back({{"image", image}, {"class", result.predictions[i]}, {"top", top}});
  }
  for (const auto& [index, entry] : stream.loader->corrupt().entries)
    log_warning("skipped the damaged image ", entry.name, ": ", entry.reason);
  if (!options.json.empty())
    write_text_output(
        options.json,
        nlohmann::ordered_json{{"model", options.model}, {"ran_as", model->description()}, {"predictions", predictions}}
                .dump(1) +
            "\n");
  return ExitCode::kDone;
}

}  // namespace

Command infer_command() {
  return {
      .name = "infer",
      .summary = "Predict the classes of images",
      .details =
          "Images are files or folders; without any, the spec's test images are taken. Prints one line an "
          "image. The spec gives the normalization (data.mean, data.std, data.resize).",
      .examples = {"octet infer -e SPEC.yaml -m results/model.octet cat.jpg photos/",
                   "octet infer -e SPEC.yaml -m results/model.octet --json predictions.json"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<Options>();
        app.add_option("IMAGES", options->images, "Image files or folders of images");
        app.add_option("-e,--experiment_spec", options->spec.path, "Experiment file: data, normalization")->required();
        app.add_option("--set", options->spec.overrides, "Change a key of the experiment (repeatable)")
            ->allow_extra_args(false)
            ->type_name("KEY=VALUE");
        add_model_flag(app, options->model, "ONNX or .octet file");
        app.add_option("--top", options->top, "Classes to show for each image")->check(CLI::Range(1, 1000));
        add_exif_flag(app, options->spec);
        add_json_flag(app, options->json);
        add_batch_size_flag(app, options->batch_size);
        add_threads_flag(app, options->threads);
        add_isa_flag(app, options->isa);
        return [options] { return run(*options); };
      }};
}

}  // namespace octet::cli
