// octet calibrate: collects ranges of a float model and writes the quantized one (post-training quantization).
#include <CLI/App.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/apply_cache.h"
#include "app/class_names.h"
#include "app/experiment_data.h"
#include "app/model_description.h"
#include "app/stage_start.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "cli/accuracy_flags.h"
#include "cli/calibration.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/json_output.h"
#include "cli/model_flags.h"
#include "cli/rules_flag.h"
#include "onnx/export.h"
#include "tasks/image_graph.h"

namespace octet::cli {
namespace {

struct CalibrateOptions {
  SpecFlags spec;
  std::string model, json, dump_passes, cache;
  std::vector<std::string> rules;
  BoundFlags bounds;
  OutputFlags output;
};

// What images say of the ranges; written as JSON where that was asked for.
void collect_ranges(ir::Graph& graph, const spec::ExperimentSpec& spec, const CalibrateOptions& options) {
  const app::DataStream images = app::open_calibration_data(spec, tasks::images_at_a_time(graph));
  const quant::CalibrationSet observed = calibrate(graph, *images.loader, spec.quantization(), options.dump_passes);
  app::mark_calibrated(graph, spec);
  if (!options.json.empty()) write_json_output(options.json, app::calibration_json(observed, spec.quant.calibration));
}

// As few layers in float as the bar wants, and a spec that makes the same again.
void calibrate_to_goal(ir::Graph& graph, const spec::ExperimentSpec& spec, const CalibrateOptions& options) {
  app::AccuracyGoal goal{.bounds = options.bounds.bounds()};
  goal.calibration = [&](int64_t batch_size) {
    spec::ExperimentSpec own = spec;
    if (batch_size > 0) own.quant.calibration.batch_size = batch_size;
    return app::open_calibration_data(own, tasks::images_at_a_time(graph));
  };
  goal.validation = [&](int64_t batch_size) {
    spec::ExperimentSpec own = spec;
    own.data.test.clear();  // what chooses must not be what measures
    return app::open_evaluation_data(own, batch_size, app::class_names_of(graph.metadata, options.model));
  };
  app::AccuracySearch found = reach_accuracy(graph, spec, spec.quantization(), goal);
  report_search(found, options.bounds, options.json);
  graph = std::move(found.graph);
  spec::ExperimentSpec settings = spec;
  settings.quant = found.options;
  app::mark_calibrated(graph, settings);
  const std::filesystem::path file = std::filesystem::path(options.output.path).replace_extension(".spec.yaml");
  write_file_atomically(file, spec::to_yaml(settings));
  log_info("wrote ", file.string(), ", which calibrates to the same without a search");
}

void apply_cache(ir::Graph& graph, const spec::ExperimentSpec& spec, const CalibrateOptions& options) {
  app::apply_cache_file(graph, options.cache, spec.quantization(), options.dump_passes);
  app::mark_calibrated(graph, spec);
}

ExitCode run_calibrate(const CalibrateOptions& options) {
  spec::ExperimentSpec spec = options.spec.load();
  take_rules(options.rules, spec.quant.placement.rules);
  require_file(options.model, "-m");
  if (!options.cache.empty()) require_file(options.cache, "--cal_cache_file");
  options.output.check();
  ir::Graph graph = app::network_to_calibrate(spec, options.model);
  warn_of_contradictions({.path = app::starting_file(spec, spec::Stage::kCalibration, options.model),
                          .metadata = graph.metadata,
                          .signature = tasks::signature_of(graph)},
                         spec, options.spec);
  app::keep_description(graph.metadata, spec, tasks::signature_of(graph));
  if (options.bounds.given())
    calibrate_to_goal(graph, spec, options);
  else if (options.cache.empty())
    collect_ranges(graph, spec, options);
  else
    apply_cache(graph, spec, options);
  onnx::export_model(graph, options.output.path, {.quantize_weights = false});
  log_info("wrote ", options.output.path);
  return ExitCode::kDone;
}

}  // namespace

Command calibrate_command() {
  return {.name = "calibrate",
          .summary = "Collect activation ranges of a float model and quantize it (PTQ)",
          .details =
              "Folds batch norms, places quantizers by the spec's rules, runs `quant.calibration.images` training "
              "images through the float model and sets the scales. The output is the start of stage qat, and can "
              "be evaluated, exported and compiled as it is.",
          .examples = {"octet calibrate -e SPEC.yaml -m results/float/model.onnx -o results/calibrated.onnx",
                       "octet calibrate -e SPEC.yaml -m float.onnx -o calibrated.onnx --accuracy-drop 0.5",
                       "octet calibrate -e SPEC.yaml -m float.onnx -o calibrated.onnx --latency-budget 2.5"},
          .define = [](CLI::App& app) -> Run {
            auto options = std::make_shared<CalibrateOptions>();
            add_spec_flags(app, options->spec);
            add_input_shape_flag(app, options->spec);
            add_model_flag(app, options->model, "Float ONNX model");
            add_output_flags(app, options->output, "ONNX file with quantizers", ".onnx");
            add_rules_flag(app, options->rules);
            add_cal_cache_flag(app, options->cache,
                               "Take the ranges of TensorRT's calibration cache of this network instead of images");
            add_json_flag(app, options->json)->excludes("--cal_cache_file");
            add_bound_flags(app, options->bounds,
                            "the spec's validation images (data.val), measured by the metric of the task");
            CLI::Option* dump = add_dump_passes_flag(app, options->dump_passes);
            for (const char* flag : kBoundFlags) dump->excludes(flag);
            add_key_flag(app);
            return [options] { return run_calibrate(*options); };
          },
          .only_there = {std::begin(kBoundFlags), std::end(kBoundFlags)}};
}

}  // namespace octet::cli
