// octet train: stages float, qat and control of an experiment.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "app/class_names.h"
#include "app/experiment_data.h"
#include "app/training/lesson.h"
#include "app/training/preview_text.h"
#include "app/training/training_listener.h"
#include "app/training/training_setup.h"
#include "app/training/validation_pictures.h"
#include "app/training_record.h"
#include "base/error.h"
#include "base/files.h"
#include "base/folder_lock.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "base/signals.h"
#include "base/temporary_path.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "onnx/export.h"
#include "passes/pipelines.h"
#include "tasks/training.h"
#include "train/preview.h"
#include "train/torch_runtime.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  SpecFlags spec;
  std::string results, model, name = "model", stage;
  bool force = false, explain = false;
};

// The start of a quantization-aware training of a float model, in the results folder.
constexpr const char* kCalibrated = "calibrated.onnx";

// What the run leaves out of reach of the next one's options.
void remove_results(const fs::path& results, const std::string& name) {
  for (const std::string& entry :
       {std::string("checkpoints"), std::string("events"), std::string("status.jsonl"), std::string("history.json"),
        std::string("training.json"), std::string(kCalibrated), name + ".onnx", name + ".best.onnx"})
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
  if (options.spec.change_experiment())
    fail_usage("-e ", options.spec.path, ": the run keeps its experiment in this file, and the other flags change it; ",
               "copy the file to another place and name that");
  return true;
}

// By these the images are labeled; empty: the training images name and number the classes anew. A later stage goes on
// with the classes of its model. A network that is trained afresh may get others, as in transfer learning.
std::vector<std::string> classes_to_keep(const ir::Graph& graph, const spec::ExperimentSpec& spec, spec::Stage stage) {
  std::vector<std::string> classes = app::class_names_of(graph.metadata, graph.name);
  if (stage != spec::Stage::kFloat || classes.empty()) return classes;
  for (const std::string& name : app::training_class_names(spec))
    if (std::find(classes.begin(), classes.end(), name) == classes.end()) {
      log_warning("the training images have the class '", name, "', which ", spec.model.pretrained,
                  " does not have; its scores get the classes of the training images");
      return {};
    }
  return classes;
}

bool holds_checkpoints(const fs::path& results) {
  std::error_code error;
  return fs::is_directory(results / "checkpoints", error) && !fs::is_empty(results / "checkpoints", error);
}

// Whether the folder's training can go on as `wanted`. UserError (exit 2) that names what differs where it cannot. A
// thread count that nobody chose stays what it was: the bytes depend on it.
void take_up(app::TrainingRecord& wanted, const fs::path& results) {
  const std::optional<app::TrainingRecord> previous = app::read_training_record(results);
  constexpr const char* kAdvice = "; name another results folder, or give --force to start anew";
  if (!previous)
    fail_usage(results.string(), ": holds a training without its training.json, so nothing tells what it was made with",
               kAdvice);
  if (wanted.spec.schedule_for(wanted.stage).threads == 0) wanted.threads = previous->threads;
  std::vector<std::string> different = differences(*previous, wanted);
  const int64_t before = epochs(*previous), after = epochs(wanted);
  const bool same_stage = previous->stage == wanted.stage;
  if (same_stage && (after < before || (after > before && !different.empty())))
    different.insert(different.begin(), str(app::epochs_key(wanted), ": ", before, " -> ", after));
  if (!different.empty()) {
    std::string list;
    for (const std::string& each : different) list += (list.empty() ? "" : ", ") + each;
    fail_usage(results.string(), ": holds a training that differs from this command in ", list, kAdvice);
  }
  if (after == before) {
    wanted.outputs = previous->outputs;
  } else if (holds_checkpoints(results)) {
    log_info("going on to ", after, " epochs where ", before, " were asked for; the schedule from here on is that of ",
             after, ", so the model is not that of ", after, " epochs from the start");
  } else {
    fail_usage(results.string(), ": was trained for ", before, " epochs and has no checkpoint from which to go on to ",
               after, kAdvice);
  }
}

spec::Stage stage_of(const Options& options, const spec::ExperimentSpec& spec) {
  if (options.stage.empty()) return spec.quant.enable_qat.value_or(false) ? spec::Stage::kQat : spec::Stage::kFloat;
  const spec::Stage stage = spec::parse_stage(options.stage);
  if (stage == spec::Stage::kQat && !spec.quant.enable_qat.value_or(true))
    fail_usage(
        "--stage qat: the experiment says quant.enable_qat: false (a specification of TAO by leaving enable_qat ",
        "out); add --set quant.enable_qat=true, or --stage control for the same training in float");
  return stage;
}

// The network as it is deployed, and where it comes from.
void write_model(ir::Graph graph, const fs::path& path, app::TrainingRecord& record) {
  passes::run_pipeline(graph, passes::deployment_passes());
  graph.metadata["octet.stage"] = spec::stage_name(record.stage);
  graph.metadata["octet.spec_hash"] = spec::spec_hash(record.spec, record.stage);
  graph.metadata["octet.data_hash"] = hex64(record.data_hash);
  graph.metadata["octet.version"] = OCTET_VERSION;
  const std::string model = onnx::export_bytes(graph, {.quantize_weights = false});
  write_file_atomically(path, model);
  record.outputs[path.filename().string()] = hash64(model);
}

// The float `graph` with quantizers. A run that goes on takes those that it began with.
ir::Graph calibrated(ir::Graph graph, const fs::path& results, app::TrainingRecord& record) {
  const fs::path kept = results / kCalibrated;
  if (app::is_finished(kept, record)) return app::starting_network(record.spec, record.stage, kept.string());
  std::error_code ignored;
  if (fs::equivalent(kept, record.model, ignored))
    fail_usage("-m ", record.model, ": the calibrated network would replace it; copy it to another folder first");
  log_info("calibrating the float model");
  app::calibrate_network(graph, record.spec);
  const std::string model = onnx::export_bytes(graph, {.quantize_weights = false});
  write_file_atomically(kept, model);
  record.outputs[kCalibrated] = hash64(model);
  return app::starting_network(record.spec, record.stage, kept.string());
}

ExitCode run(const Options& options) {
  guard_output(fs::path(options.results) / (options.name + ".onnx"), "-r");
  spec::ExperimentSpec spec = options.spec.load();
  const spec::Stage stage = stage_of(options, spec);
  if (!options.model.empty()) require_file(options.model, "-m");
  const fs::path results = options.results, output = results / (options.name + ".onnx");
  make_results_directory(results);
  const FolderLock lock(results);
  if (options.force)
    for (const std::string& model : {options.model, spec.model.pretrained, spec.schedule_for(stage).distill.teacher})
      require_kept(results, model);
  if (options.force) remove_results(results, options.name);
  const train::TrainOptions& schedule = spec.schedule_for(stage);
  train::initialize_torch();
  ir::Graph graph = app::starting_network(spec, stage, options.model);
  app::require_lesson(spec, schedule);
  app::DataStream training = app::open_training_data(spec, schedule, classes_to_keep(graph, spec, stage));
  train::TrainerOptions trainer = app::trainer_options(spec, stage, results);
  app::TrainingRecord record{.stage = stage, .spec = spec, .model = app::starting_file(spec, stage, options.model)};
  if (!record.model.empty()) record.model_hash = hash64(read_file(record.model));
  if (!schedule.distill.teacher.empty()) record.teacher_hash = hash64(read_file(schedule.distill.teacher));
  record.data_hash = training.dataset->content_hash();
  record.threads = schedule.threads > 0 ? schedule.threads : train::torch_threads();
  record.precision = train::precision_name(trainer.executor.precision);
  if (fs::exists(output) || holds_checkpoints(results)) take_up(record, results);
  if (app::is_finished(output, record)) {
    log_info(output.string(), " is there already: nothing to do (--force trains anew)");
    return ExitCode::kDone;
  }
  if (options.spec.use_amp && trainer.executor.precision == train::Precision::kFloat32)
    log_warning("--use_amp: trains in fp32 all the same, because ",
                stage == spec::Stage::kControl ? "stage control does" : "this CPU has no BF16 instructions");
  train::set_torch_threads(static_cast<int>(record.threads));
  trainer.fingerprint = fingerprint(record);
  if (training.loader->batches_per_epoch() < 1)
    fail_usage("a batch of ", schedule.batch_size_per_gpu, " images is more than the ", training.dataset->size(),
               " training images; lower ", stage == spec::Stage::kFloat ? "train" : "finetune", ".batch_size_per_gpu");
  app::DataStream validation = app::open_validation_data(spec, training);
  if (!validation.dataset)
    log_warning("no images validate (data.val); nothing is measured, and the model is that of the last epoch");
  app::keep_class_names(graph.metadata, training.dataset->class_names());
  spec.task->name_classes(training.dataset->class_names());
  if (!own_spec_file(options, results / "spec.yaml")) write_file_atomically(results / "spec.yaml", spec::to_yaml(spec));
  app::write_training_record(results, record);
  make_results_directory(trainer.checkpoints);
  remove_leftovers(trainer.checkpoints);  // of runs that were killed while they wrote one
  log_info("stage ", spec::stage_name(stage), ": ", training.dataset->size(), " images, ", schedule.epochs, " epochs, ",
           train::precision_name(trainer.executor.precision), " on ", trainer.executor.device);
  if (stage == spec::Stage::kQat && !app::has_quantizers(graph)) {
    graph = calibrated(std::move(graph), results, record);
    app::write_training_record(results, record);
  }
  app::Lesson lesson = app::lesson_of(spec, schedule, trainer.executor, graph);
  if (options.explain)
    std::cout << app::preview_text(train::preview(lesson.executed, trainer, training.loader->batches_per_epoch(), 1),
                                   schedule)
              << std::flush;
  std::optional<app::ValidationPictures> pictures;
  if (validation.dataset && schedule.visualizer.enabled)
    pictures.emplace(*spec.task, *validation.dataset, schedule.visualizer);
  const train::Validation measure = tasks::validation_of(*spec.task, validation.loader.get(),
                                                         [&](const tasks::Outputs& outputs, const data::Batch& batch) {
                                                           if (pictures) pictures->look(outputs, batch);
                                                         });
  app::TrainingListener listener(results, spec::stage_name(stage), schedule, training.loader->images_per_epoch(),
                                 pictures ? &*pictures : nullptr);
  install_stop_handler();  // the training asks for it after every batch
  try {
    const train::TrainResult result = train::train({.network = graph,
                                                    .executed = lesson.executed,
                                                    .loader = *training.loader,
                                                    .loss = *lesson.loss,
                                                    .validation = measure},
                                                   trainer, &listener);
    const data::CorruptReport& corrupt = training.loader->corrupt();
    for (const auto& [index, entry] : corrupt.entries)
      log_warning("skipped the damaged image ", entry.name, ": ", entry.reason);
    write_file_atomically(results / "history.json", checkpoint::history_json(result.run.history));
    if (result.stopped) {
      listener.finish(false, "stopped by a signal");
      fail("stopped by a signal after ", result.run.epochs_done, " of ", schedule.epochs,
           " epochs; the state is saved and the same command goes on from there");
    }
    if (schedule.final_model == train::FinalModel::kLast && result.run.best_epoch > 0)
      write_model(checkpoint::load_best(trainer.checkpoints, result.run.best_epoch),
                  results / (options.name + ".best.onnx"), record);
    write_model(std::move(graph), output, record);
    app::write_training_record(results, record);
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
          .summary = "Train a network, or fine-tune it quantization-aware",
          .details =
              "Stage float trains the spec's network with `train`; stage qat fine-tunes a calibrated model with "
              "`finetune`, fake quantization in, and calibrates a float model first; stage control is the same "
              "fine-tune without quantization. Writes "
              "NAME.onnx, checkpoints, history.json, status.jsonl and TensorBoard events to the results folder. "
              "A run that was interrupted goes on when the same command is given again, one that is finished goes on "
              "to more epochs. Another spec, stage, model or data set in the same folder is refused.",
          .examples = {"octet train classification -e examples/fashion_mnist_resnet20.yaml -r results/float",
                       "octet train -e SPEC.yaml -r results/qat --stage qat -m results/calibrated.onnx"},
          .define = [](CLI::App& app) -> Run {
            auto options = std::make_shared<Options>();
            add_spec_flags(app, options->spec, Need::kRequired, /*training=*/true);
            add_results_flag(app, options->results);
            add_model_flag(app, options->model, "ONNX file to start from, also a pruned one", Need::kOptional);
            add_name_flag(app, options->name);
            add_key_flag(app);
            limit_to(app.add_option("--stage", options->stage,
                                    "What is trained (default: float; qat with quant.enable_qat: true)"),
                     "float|qat|control");
            app.add_flag("--explain", options->explain,
                         "Print types of all nodes, groups of parameters and schedule before it starts");
            app.add_flag("--force", options->force, "Start anew where results are there already");
            return [options] { return run(*options); };
          }};
}

}  // namespace octet::cli
