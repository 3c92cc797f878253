// octet train: stages float, qat and control of an experiment.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "base/files.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "base/signals.h"
#include "base/temporary_path.h"
#include "cli/commands.h"
#include "cli/experiment_data.h"
#include "cli/flags.h"
#include "cli/training_listener.h"
#include "cli/training_setup.h"
#include "onnx/export.h"
#include "passes/snap_biases.h"
#include "tasks/classification.h"
#include "train/torch_runtime.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  SpecFlags spec;
  std::string results, model, name = "model", stage = "float";
  bool force = false;
};

// What the run leaves out of reach of the next one's options.
void remove_results(const fs::path& results, const std::string& name) {
  for (const std::string& entry : {std::string("checkpoints"), std::string("events"), std::string("status.jsonl"),
                                   std::string("history.json"), name + ".onnx"})
    remove_output(results / entry);
}

// What --force removes must not be what the run starts from.
void require_kept(const fs::path& results, const std::string& model) {
  std::error_code ignored;
  const std::string removed = fs::weakly_canonical(results / "checkpoints", ignored).string() + "/";
  if (!model.empty() && fs::weakly_canonical(model, ignored).string().starts_with(removed))
    fail_usage(model, ": --force would remove it before the run can start from it; copy it to another folder first");
}

// The file in which the run keeps its experiment may be the one that it was given.
bool own_spec_file(const Options& options, const fs::path& kept) {
  std::error_code error;
  if (!fs::equivalent(options.spec.path, kept, error) || error) return false;
  if (!options.spec.overrides.empty() || options.spec.gpus > 0 || options.spec.use_amp)
    fail_usage("-e ", options.spec.path, ": the run keeps its experiment in this file, and the other flags change it; ",
               "copy the file to another place and name that");
  return true;
}

ExitCode run(const Options& options) {
  guard_output(fs::path(options.results) / (options.name + ".onnx"), "-r");
  const spec::ExperimentSpec spec = options.spec.load();
  const spec::Stage stage = spec::parse_stage(options.stage);
  if (stage == spec::Stage::kCalibration) fail_usage("stage calibration is a command of its own: octet calibrate");
  if (!options.model.empty()) require_file(options.model, "-m");
  const fs::path results = options.results, output = results / (options.name + ".onnx");
  make_results_directory(results);
  if (options.force)
    for (const std::string& model : {options.model, spec.model.pretrained}) require_kept(results, model);
  if (options.force) remove_results(results, options.name);
  if (fs::exists(output)) {
    log_info(output.string(), " is there already: nothing to do (--force trains anew)");
    return ExitCode::kDone;
  }
  const spec::TrainSpec& schedule = spec.schedule_for(stage);
  train::initialise_torch();
  if (schedule.threads > 0) train::set_torch_threads(static_cast<int>(schedule.threads));
  ir::Graph graph = starting_network(spec, stage, options.model);
  DataStream training = open_training_data(spec, schedule);
  DataStream validation = open_validation_data(spec);
  if (!own_spec_file(options, results / "spec.yaml"))
    write_file_atomically(results / "spec.yaml", spec::to_yaml(spec));
  const train::TrainerOptions trainer = trainer_options(spec, stage, results);
  make_results_directory(trainer.checkpoints);
  remove_leftovers(trainer.checkpoints);  // of runs that were killed while they wrote one
  log_info("stage ", options.stage, ": ", training.dataset->size(), " images, ", schedule.epochs, " epochs, ",
           train::precision_name(trainer.executor.precision), " on ", trainer.executor.device);
  tasks::ClassificationTask task({.label_smoothing = schedule.label_smoothing,
                                  .top_k = static_cast<int>(spec.evaluate.top_k)}, validation.loader.get());
  TrainingListener listener(results, options.stage, schedule.epochs, training.loader->images_per_epoch());
  install_stop_handler();  // the training asks for it after every batch
  try {
    const train::TrainResult result = train::train(graph, *training.loader, task, trainer, &listener);
    const data::CorruptReport& corrupt = training.loader->corrupt();
    for (const auto& [index, entry] : corrupt.entries)
      log_warning("skipped the damaged image ", entry.name, ": ", entry.reason);
    write_file_atomically(results / "history.json", checkpoint::history_json(result.run.history));
    if (result.stopped) {
      listener.finish(false, "stopped by a signal");
      fail("stopped by a signal after ", result.run.epochs_done, " of ", schedule.epochs,
           " epochs; the state is saved and the same command goes on from there");
    }
    passes::snap_biases(graph);  // of quantised layers: from here on the graph is the deployed arithmetic
    graph.metadata["octet.stage"] = options.stage;
    graph.metadata["octet.spec_hash"] = spec::spec_hash(spec, stage);
    graph.metadata["octet.data_hash"] = hex64(training.dataset->content_hash());
    graph.metadata["octet.version"] = OCTET_VERSION;
    onnx::export_model(graph, output, {.quantize_weights = false});
    listener.finish(true, "wrote " + output.string());
    log_info("wrote ", output.string());
  } catch (const UserError& e) {
    try {
      listener.finish(false, e.what());
    } catch (const UserError&) {
      // A full disk takes no last line either; the first error is the one to report.
    }
    throw;
  }
  return ExitCode::kDone;
}

}  // namespace

Command train_command() {
  return {.name = "train",
          .summary = "Train a network, or fine-tune it quantisation-aware",
          .details = "Stage float trains the spec's network with `train`; stage qat fine-tunes a calibrated model with "
                     "`finetune`, fake quantisation in; stage control is the same fine-tune without quantisation. Writes "
                     "NAME.onnx, checkpoints, history.json, status.jsonl and TensorBoard events to the results folder. "
                     "A run that was interrupted goes on when the same command is given again.",
          .examples = {"octet train classification -e examples/fashion_mnist_resnet20.yaml -r results/float",
                       "octet train -e SPEC.yaml -r results/qat --stage qat -m results/calibrated.onnx"},
          .define = [](CLI::App& app) -> Run {
            auto options = std::make_shared<Options>();
            add_spec_flags(app, options->spec, Need::kRequired, /*training=*/true);
            add_results_flag(app, options->results);
            add_model_flag(app, options->model, "ONNX file to start from (stages qat and control)", Need::kOptional);
            add_name_flag(app, options->name);
            add_key_flag(app);
            app.add_option("--stage", options->stage, "float, qat or control")->capture_default_str();
            app.add_flag("--force", options->force, "Start anew where results are there already");
            return [options] { return run(*options); };
          }};
}

}  // namespace octet::cli
