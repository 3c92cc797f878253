// octet sensitivity: what the quantization of each layer costs.
#include <CLI/App.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/experiment_data.h"
#include "app/image_files.h"
#include "app/network_file.h"
#include "app/sensitivity.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/json_output.h"
#include "cli/model_flags.h"
#include "report/progress.h"
#include "tasks/image_graph.h"

namespace octet::cli {
namespace {

struct SensitivityOptions {
  SpecFlags spec;
  ModelFlags input;
  std::string model, json, isa;
  std::vector<std::string> images;
  int64_t count = 32, threads = 0, rows = 20;
};

app::DataStream images_of(const SensitivityOptions& options, spec::ExperimentSpec spec,
                          const data::NetworkInput& input) {
  // The engine takes the network's own batch, or one image at a time.
  const int64_t at_a_time = std::max<int64_t>(input.batch, 1);
  spec.quant.calibration.images = options.count;
  return options.images.empty() ? app::open_calibration_data(spec, at_a_time)
                                : app::open_calibration_files(spec, options.images,
                                                              {input.channels, input.height, input.width}, at_a_time);
}

ExitCode run_sensitivity(const SensitivityOptions& options) {
  require_file(options.model, "-m");
  const ir::Graph graph = app::load_network(options.model, options.spec.input_shapes(options.model));
  app::ModelFacts model{.path = options.model, .metadata = graph.metadata, .signature = tasks::signature_of(graph)};
  const spec::ExperimentSpec spec = experiment_to_run(options.spec, options.input, model);
  const app::DataStream stream = images_of(options, spec, tasks::image_input(graph));
  const app::GraphRunner runner = app::run_by_engine(*stream.loader, {.threads = options.threads, .isa = options.isa});
  report::Progress progress({.label = "sensitivity", .unit = "layers"});
  const app::Sensitivity result = app::measure_sensitivity(graph, runner, [&](int64_t done) { progress.update(done); });
  progress.finish();
  if (result.codes_only)
    log_warning(options.model, ": holds the codes of weights, so that what these lost is not seen; take the file that ",
                "octet calibrate writes, which keeps them");
  if (options.json != "-") std::cout << app::sensitivity_table(result, static_cast<size_t>(options.rows));
  if (!options.json.empty()) write_json_output(options.json, app::sensitivity_json(result));
  return ExitCode::kDone;
}

}  // namespace

Command sensitivity_command() {
  return {
      .name = "sensitivity",
      .summary = "Show what the quantization of each layer costs",
      .details =
          "Runs a calibrated network over some images (--images, else those that the spec calibrates with) by the "
          "engine: each layer quantized alone, and all but that layer, beside the float network. The numbers are "
          "signal to noise of the outputs in decibels; what costs most alone comes first. Layers that cost much "
          "can stay float (quant.exclude).",
      .examples = {"octet sensitivity -e SPEC.yaml -m results/calibrated.onnx",
                   "octet sensitivity -e SPEC.yaml -m results/calibrated.onnx --images photos/ --json layers.json"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<SensitivityOptions>();
        add_spec_flags(app, options->spec, Need::kOptional);
        add_model_flags(app, options->input);
        add_input_shape_flag(app, options->spec);
        add_model_flag(app, options->model, "ONNX file with quantizers, as octet calibrate writes it");
        app.add_option("--images", options->images, "Image files or folders");
        add_number_flag(app, "--count", options->count, 1, 100'000, "Images to use at most")->capture_default_str();
        add_number_flag(app, "--rows", options->rows, 0, 1'000'000, "Layers to show; 0: all")->capture_default_str();
        add_exif_flag(app, options->spec);
        add_json_flag(app, options->json);
        add_threads_flag(app, options->threads);
        add_isa_flag(app, options->isa);
        return [options] { return run_sensitivity(*options); };
      }};
}

}  // namespace octet::cli
