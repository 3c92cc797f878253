// octet evaluate: accuracy of a model file, float, fake-quantized or compiled, on the spec's test images.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/experiment_data.h"
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
  int64_t batch_size = 0, threads = 0;
};

ExitCode run(const Options& options) {
  const spec::ExperimentSpec spec = options.spec.load();
  require_file(options.model, "-m");
  const std::unique_ptr<Classifier> model =
      open_classifier(options.model, {.threads = options.threads, .isa = options.isa});
  if (model->classes() != spec.model.num_classes)
    fail_usage(options.model, ": has ", model->classes(),
               " classes, the spec says model.num_classes: ", spec.model.num_classes);
  app::DataStream images = app::open_evaluation_data(
      spec, model->batch_size() > 0 ? model->batch_size() : options.batch_size, model->class_names());
  if (!images.dataset->labeled()) fail_usage("the images to evaluate have no labels; octet infer needs none");
  const int top_k = static_cast<int>(std::min(spec.evaluate.top_k, model->classes()));
  const Classification result = classify(*model, *images.loader, top_k, "evaluate");
  for (const auto& [index, entry] : images.loader->corrupt().entries)
    log_warning("skipped the damaged image ", entry.name, ": ", entry.reason);
  const metrics::TopKAccumulator& accuracy = result.accuracy;
  char numbers[200];
  std::snprintf(numbers, sizeof numbers, "top-1 %.2f %%  top-%d %.2f %%  loss %.4f  on %lld images, %.0f images/s",
                100 * accuracy.top_1(), top_k, 100 * accuracy.top_k(), result.loss,
                static_cast<long long>(accuracy.images()), static_cast<double>(accuracy.images()) / result.seconds);
  std::cout << printable_line(str(options.model, " (", model->description(), "): ", numbers)) << '\n';
  if (!options.json.empty()) {
    nlohmann::ordered_json j = {{"model", options.model},
                                {"ran_as", model->description()},
                                {"images", accuracy.images()},
                                {"top1", 100 * accuracy.top_1()},
                                {"top_k", top_k},
                                {"topk", 100 * accuracy.top_k()},
                                {"loss", result.loss},
                                {"corrupt_images", images.loader->corrupt().count()},
                                {"seconds", result.seconds}};
    nlohmann::ordered_json classes = nlohmann::ordered_json::array();
    const std::vector<double> per_class = accuracy.per_class_accuracy();
    for (size_t c = 0; c < per_class.size(); ++c) {
      const auto& names = images.dataset->class_names();
      classes.push_back({{"class", c < names.size() ? names[c] : std::to_string(c)}, {"top1", 100 * per_class[c]}});
    }
    j["classes"] = classes;
    write_text_output(options.json, j.dump(1) + "\n");
  }
  return ExitCode::kDone;
}

}  // namespace

Command evaluate_command() {
  return {.name = "evaluate",
          .summary = "Measure the accuracy of a model or an engine",
          .details =
              "Runs the spec's test images (else its validation images) through an ONNX file, float or with "
              "quantizers, or through an engine file, and prints top-1 and top-k.",
          .examples = {"octet evaluate -e SPEC.yaml -m results/qat/model.onnx",
                       "octet evaluate -e SPEC.yaml -m results/model.octet --threads 1 --json engine.json"},
          .define = [](CLI::App& app) -> Run {
            auto options = std::make_shared<Options>();
            add_spec_flags(app, options->spec);
            add_model_flag(app, options->model, "ONNX or .octet file");
            add_json_flag(app, options->json);
            add_batch_size_flag(app, options->batch_size);
            add_threads_flag(app, options->threads);
            add_isa_flag(app, options->isa);
            add_key_flag(app);
            return [options] { return run(*options); };
          }};
}

}  // namespace octet::cli
