// octet evaluate: accuracy of a model file, float, fake-quantized or compiled, on the spec's test images.
#include <CLI/App.hpp>
#include <memory>

#include "app/peer_model.h"
#include "base/error.h"
#include "base/output_guard.h"
#include "cli/commands.h"
#include "cli/evaluation.h"
#include "cli/flags.h"
#include "cli/model_flags.h"
#include "cli/open_model.h"

namespace octet::cli {
namespace {

struct EvaluateOptions {
  SpecFlags spec;
  ModelFlags input;
  std::string model, images, json, isa, runtime;
  int64_t batch_size = 0, threads = 0;
};

Runtime runtime(const std::string& name) {
  return name == "engine" ? Runtime::kEngine : name == "libtorch" ? Runtime::kLibTorch : Runtime::kAuto;
}

ExitCode run_evaluate(const EvaluateOptions& options) {
  require_file(options.model, "-m");
  app::ModelFile file = app::read_model_file(options.model, options.spec.input_shapes(options.model));
  spec::ExperimentSpec spec = experiment_to_run(with_images(options.spec, options.images), options.input, file);
  const tasks::Task& task = *spec.task;
  if (options.runtime == "libtorch" && app::has_open_outputs(file))
    fail_usage(options.model,
               ": ends with its own suppression, which the engine runs, not LibTorch; leave out --runtime");
  const app::RunOptions run_options{.threads = options.threads, .isa = options.isa, .input = spec.model.input};
  const std::unique_ptr<app::Model> model = options.runtime == "onnxruntime" || options.runtime == "openvino"
                                                ? app::open_peer_model(file, options.runtime, task, run_options)
                                                : open_model(file, task, run_options, runtime(options.runtime));
  evaluate(spec, *model, options.model, options.batch_size, options.json);
  return ExitCode::kDone;
}

}  // namespace

Command evaluate_command() {
  return {.name = "evaluate",
          .summary = "Measure the accuracy of a model or an engine",
          .details =
              "Runs the images of --images, or the spec's test images (else its validation images) through an ONNX "
              "file, float or with "
              "quantizers, or through an engine file, and prints the metrics of the task, for each class and for all: "
              "top-1 and top-k of a classifier, average precision of a detector as VOC and COCO define it. --json has "
              "the curves and the worst images, too.",
          .examples = {"octet evaluate -m results/model.octet --images photos/test",
                       "octet evaluate -e SPEC.yaml -m results/qat/model.onnx",
                       "octet evaluate -e SPEC.yaml -m results/model.octet --threads 1 --json engine.json",
                       "octet evaluate -e SPEC.yaml -m results/model.qdq.onnx --runtime onnxruntime"},
          .define = [](CLI::App& app) -> Run {
            auto options = std::make_shared<EvaluateOptions>();
            add_spec_flags(app, options->spec, Need::kOptional);
            add_model_flag(app, options->model, "ONNX or .octet file");
            add_labeled_images_flag(app, options->images);
            add_model_flags(app, options->input);
            add_input_shape_flag(app, options->spec);
            add_json_flag(app, options->json);
            add_batch_size_flag(app, options->batch_size);
            add_threads_flag(app, options->threads);
            add_isa_flag(app, options->isa);
            limit_to(app.add_option(
                         "--runtime", options->runtime,
                         "Who runs an ONNX file (default: libtorch where octet_training is there, else the engine); "
                         "onnxruntime and openvino as the file is (needs scripts/peers_venv.sh)"),
                     "engine|libtorch|onnxruntime|openvino");
            add_key_flag(app);
            return [options] { return run_evaluate(*options); };
          }};
}

}  // namespace octet::cli
