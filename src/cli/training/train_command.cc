// octet train: stages float, qat and control of an experiment.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "app/class_names.h"
#include "app/experiment_data.h"
#include "app/model_description.h"
#include "app/stage_start.h"
#include "app/training/lesson.h"
#include "app/training/preview_text.h"
#include "app/training/training_listener.h"
#include "app/training/training_setup.h"
#include "app/training/validation_pictures.h"
#include "app/training/written_model.h"
#include "app/training_folder.h"
#include "app/training_record.h"
#include "base/command_line.h"
#include "base/error.h"
#include "base/files.h"
#include "base/folder_lock.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "base/signals.h"
#include "base/temporary_file.h"
#include "base/temporary_path.h"
#include "cli/commands.h"
#include "cli/train_flags.h"
#include "cli/training/ranks.h"
#include "cli/training/stages.h"
#include "onnx/export.h"
#include "passes/pipelines.h"
#include "tasks/training.h"
#include "train/preview.h"
#include "train/torch_runtime.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

// The file in which the run keeps its experiment may be the one that it was given.
bool own_spec_file(const TrainOptions& options, const fs::path& kept) {
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

spec::Stage stage_of(const TrainOptions& options, const spec::ExperimentSpec& spec) {
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
  if (record.stage == spec::Stage::kQat) passes::run_pipeline(graph, passes::deployment_passes());
  graph.metadata["octet.stage"] = spec::stage_name(record.stage);
  graph.metadata["octet.spec_hash"] = spec::spec_hash(record.spec, record.stage);
  graph.metadata["octet.data_hash"] = hex64(record.data_hash);
  graph.metadata["octet.version"] = OCTET_VERSION;
  const std::string model = onnx::export_bytes(graph, {.quantize_weights = false});
  write_file_atomically(path, model);
  record.outputs[path.filename().string()] = hash64(model);
}

// The float `graph` with quantizers. A run that goes on takes those that it began with. Each rank calibrates on its
// part of the images; the first one keeps what comes of it, and the others take that.
ir::Graph calibrated(ir::Graph graph, const fs::path& results, app::TrainingRecord& record, const Ranks& ranks) {
  const fs::path kept = results / app::kCalibrated;
  std::string model;
  train::on_all_ranks(ranks.communicator(), [&] {
    if (!ranks.first()) return;
    std::error_code ignored;
    if (app::is_finished(kept, record))
      model = read_file(kept);
    else if (fs::equivalent(kept, record.model, ignored))
      fail_usage("-m ", record.model, ": the calibrated network would replace it; copy it to another folder first");
  });
  model = ranks.communicator().broadcast(model);
  if (model.empty()) {
    log_info("calibrating the float model");
    app::calibrate_network(graph, record.spec, ranks.communicator());
    model = onnx::export_bytes(graph, {.quantize_weights = false});
    if (ranks.first()) write_file_atomically(kept, model);
    record.outputs[app::kCalibrated] = hash64(model);
  }
  if (ranks.first()) return app::starting_network(record.spec, record.stage, kept.string());
  const TemporaryFile copy(app::kCalibrated, model);
  return app::starting_network(record.spec, record.stage, copy.path().string());
}

// What a training starts from.
struct Start {
  spec::ExperimentSpec spec;
  spec::Stage stage;
  ir::Graph graph;
  app::DataStream training, validation;
  train::TrainerOptions trainer;
  app::TrainingRecord record;
  const train::TrainOptions& schedule() const { return spec.schedule_for(stage); }
};

Start start_of(const TrainOptions& options, const Ranks& ranks) {
  Start s{.spec = options.spec.load(), .stage = {}};
  s.stage = stage_of(options, s.spec);
  const train::TrainOptions& schedule = s.schedule();
  s.graph = app::starting_network(s.spec, s.stage, options.model);
  app::require_lesson(s.spec, schedule);
  s.training = app::open_training_data(s.spec, schedule, classes_to_keep(s.graph, s.spec, s.stage),
                                       app::share_of(ranks.communicator()));
  s.trainer = app::trainer_options(s.spec, s.stage, options.results);
  if (ranks.world.size > 1 && schedule.sync_batch_norm) s.trainer.executor.statistics = &ranks.communicator();
  s.trainer.executor.device = own_device(s.trainer.executor.device, ranks.world);
  s.record = {.stage = s.stage, .spec = s.spec, .model = app::starting_file(s.spec, s.stage, options.model)};
  if (!s.record.model.empty()) s.record.model_hash = hash64(read_file(s.record.model));
  if (!schedule.distill.teacher.empty()) s.record.teacher_hash = hash64(read_file(schedule.distill.teacher));
  s.record.data_hash = s.training.dataset->content_hash();
  s.record.images = s.training.dataset->size();
  s.record.command = command_line();
  s.record.workers = ranks.world.size;
  s.record.threads = schedule.threads > 0 ? schedule.threads : train::torch_threads();
  s.record.precision = train::precision_name(s.trainer.executor.precision);
  s.trainer.fingerprint = fingerprint(s.record);
  return s;
}

// Before anything is opened. Only the first rank touches the folder; a restarted one goes on where it stands.
void make_room(const TrainOptions& options, const Ranks& ranks, std::optional<FolderLock>& lock) {
  guard_output(fs::path(options.results) / (options.name + ".onnx"), "-r");
  const spec::ExperimentSpec spec = options.spec.load();
  const spec::Stage stage = stage_of(options, spec);
  if (!options.model.empty()) require_file(options.model, "-m");
  make_results_directory(options.results);
  lock.emplace(options.results);
  if (!options.force || ranks.world.restarts > 0) return;
  for (const std::string& model : {options.model, spec.model.pretrained, spec.schedule_for(stage).distill.teacher})
    app::require_outside_training(options.results, model);
  app::remove_training(options.results, options.name);
}

// Whether there is something to do; then the first rank has noted in the folder what it is.
bool take_up_folder(const TrainOptions& options, Start& s) {
  const fs::path results = options.results, output = results / (options.name + ".onnx");
  if (fs::exists(output) || app::holds_checkpoints(results)) app::take_up_training(s.record, results);
  if (app::is_finished(output, s.record)) {
    log_info(output.string(), " is there already: nothing to do (--force trains anew)");
    return false;
  }
  if (!own_spec_file(options, results / "spec.yaml"))
    write_file_atomically(results / "spec.yaml", spec::to_yaml(s.spec));
  app::write_training_record(results, s.record);
  make_results_directory(s.trainer.checkpoints);
  remove_leftovers(s.trainer.checkpoints);  // of runs that were killed while they wrote one
  return true;
}

void require_same_experiment(const Start& s, const Ranks& ranks) {
  const std::string other =
      train::combined(ranks.communicator(), s.trainer.fingerprint, [](const std::vector<std::string>& of_ranks) {
        const auto found = std::find_if(of_ranks.begin(), of_ranks.end(),
                                        [&](const std::string& each) { return each != of_ranks[0]; });
        return found == of_ranks.end() ? std::string() : std::to_string(found - of_ranks.begin());
      });
  if (other.empty()) return;
  if (!ranks.first()) throw UserError("", ExitCode::kUsage);  // the first one tells
  fail_usage("rank ", other, " has another experiment, model, precision or training images than rank 0; give all the ",
             "same command, and the same files on every machine");
}

// The signal that stopped the training, on whichever rank it arrived.
int signal_of_any_rank(train::Communicator& communicator) {
  return std::stoi(
      train::combined(communicator, std::to_string(stop_signal()), [](const std::vector<std::string>& of_ranks) {
        int signal = 0;
        for (const std::string& each : of_ranks) signal = std::max(signal, std::stoi(each));
        return std::to_string(signal);
      }));
}

// What --explain prints. `times`: batches of a step.
void explain(const Start& s, const app::Lesson& lesson, const World& world, int64_t times) {
  train::TrainerOptions trainer = s.trainer;
  trainer.executor.statistics = nullptr;  // this process looks at it alone
  trainer.optimizer.lr *= train::lr_scale(s.schedule().lr_scaling, static_cast<double>(times));
  const int64_t steps = s.training.loader->batches_per_epoch() / s.schedule().accumulate;
  std::cout << app::preview_text(train::preview(lesson.executed, trainer, steps, 1), s.schedule(), world) << std::flush;
}

// What comes behind a training on a folder.
std::string next_command(const TrainOptions& options, spec::Stage stage) {
  const fs::path results = options.results, model = results / (options.name + ".onnx");
  const std::string spec = (results / "spec.yaml").string();
  std::string out = "the experiment is " + spec;
  if (stage == spec::Stage::kFloat)
    out +=
        str("; INT8 next: octet calibrate -e ", spec, " -m ", model.string(), " -o ", (results / "int8.onnx").string());
  if (stage == spec::Stage::kQat)
    out += str("; next: octet compile ", model.string(), " -o ", (results / (options.name + ".octet")).string());
  return out;
}

// Of the network that is written, while it trained.
double measured_at_the_end(const Start& s, const checkpoint::RunState& run, const std::string& metric) {
  const bool is_best = s.schedule().final_model == train::FinalModel::kBest && run.best_epoch > 0;
  return is_best ? run.best_metric : run.history.back().metrics.at(metric);
}

ExitCode train_network(const TrainOptions& options, const Ranks& ranks) {
  train::Communicator& communicator = ranks.communicator();
  std::optional<FolderLock> lock;
  std::optional<Start> start;
  train::initialize_torch();
  train::on_all_ranks(communicator, [&] {
    if (ranks.first()) make_room(options, ranks, lock);
  });
  train::on_all_ranks(communicator, [&] { start.emplace(start_of(options, ranks)); });
  Start& s = *start;
  require_same_experiment(s, ranks);
  std::string threads;  // empty: there is nothing to do
  train::on_all_ranks(communicator, [&] {
    if (ranks.first() && take_up_folder(options, s)) threads = std::to_string(s.record.threads);
  });
  threads = communicator.broadcast(threads);
  if (threads.empty()) return ExitCode::kDone;
  s.record.threads = std::stoll(threads);
  train::set_torch_threads(static_cast<int>(s.record.threads));
  const fs::path results = options.results, output = results / (options.name + ".onnx");
  train::on_all_ranks(communicator, [&] {
    if (s.training.loader->batches_per_epoch() < s.schedule().accumulate)
      fail_usage(s.schedule().accumulate > 1 ? str("a step of ", s.schedule().accumulate, " batches") : "a batch",
                 " of ", s.schedule().batch_size_per_gpu, " images",
                 ranks.world.size > 1 ? str(" on each of ", ranks.world.size, " workers") : "", " is more than the ",
                 s.training.dataset->size(), " training images; lower ",
                 s.stage == spec::Stage::kFloat ? "train" : "finetune", ".batch_size_per_gpu");
    s.validation = app::open_validation_data(s.spec, s.training);
  });
  if (options.spec.use_amp && s.trainer.executor.precision == train::Precision::kFloat32)
    log_warning("--use_amp: trains in fp32 all the same, because this CPU has no BF16 instructions");
  if (!s.validation.dataset)
    log_warning("no images validate (data.val); nothing is measured, and the model is that of the last epoch");
  app::keep_class_names(s.graph.metadata, s.training.dataset->class_names());
  app::keep_description(s.graph.metadata, s.spec, tasks::signature_of(s.graph));
  s.spec.task->name_classes(s.training.dataset->class_names());
  log_info("stage ", spec::stage_name(s.stage), ": ", s.training.dataset->size(), " images, ", s.schedule().epochs,
           " epochs, ", train::precision_name(s.trainer.executor.precision), " on ", s.trainer.executor.device,
           ranks.world.size > 1 ? str(", ", ranks.world.size, " workers with batches of ",
                                      s.schedule().batch_size_per_gpu, " and ", s.record.threads, " threads each")
                                : "");
  const int64_t times = ranks.world.size * s.schedule().accumulate;
  if (times > 1)
    log_info("a step has ", times, " batches; the learning rate is ",
             train::lr_scale(s.schedule().lr_scaling, static_cast<double>(times)),
             " times optimizer.lr (lr_scaling: ", schema::enum_name(s.schedule().lr_scaling), ")");
  if (s.stage == spec::Stage::kQat && !app::has_quantizers(s.graph)) {
    s.graph = calibrated(std::move(s.graph), results, s.record, ranks);
    if (ranks.first()) app::write_training_record(results, s.record);
  }
  app::Lesson lesson = app::lesson_of(s.spec, s.schedule(), s.trainer.executor, s.graph);
  if (options.explain && ranks.first()) explain(s, lesson, ranks.world, times);
  std::optional<app::ValidationPictures> pictures;
  if (s.validation.dataset && s.schedule().visualizer.enabled)
    pictures.emplace(*s.spec.task, *s.validation.dataset, s.schedule().visualizer);
  const train::Validation measure = tasks::validation_of(
      *s.spec.task, s.validation.loader.get(),
      [&](const tasks::Outputs& outputs, const data::Batch& batch) {
        if (pictures) pictures->look(outputs, batch);
      },
      communicator);
  std::optional<app::TrainingListener> listener;
  if (ranks.first())
    listener.emplace(results, spec::stage_name(s.stage), s.schedule(), s.training.loader->images_per_epoch(),
                     pictures ? &*pictures : nullptr);
  install_stop_handler();  // the training asks for it after every batch
  try {
    const train::TrainResult result = train::train({.network = s.graph,
                                                    .executed = lesson.executed,
                                                    .loader = *s.training.loader,
                                                    .loss = *lesson.loss,
                                                    .validation = measure,
                                                    .communicator = communicator},
                                                   s.trainer, listener ? &*listener : nullptr);
    const data::CorruptReport& corrupt = s.training.loader->corrupt();
    for (const auto& [index, entry] : corrupt.entries)
      log_warning("skipped the damaged image ", entry.name, ": ", entry.reason);
    const ExitCode stopped = result.stopped ? stopped_by(signal_of_any_rank(communicator)) : ExitCode::kDone;
    if (result.stopped && !ranks.first()) throw UserError("", stopped);  // the first one tells
    const bool is_measured = !result.stopped && s.stage == spec::Stage::kQat && measure.evaluate;
    const auto measure_written = [&] {
      return app::measure_written(s.graph, *s.spec.task, measure, s.trainer.executor.device);
    };
    if (!ranks.first()) {
      if (is_measured) measure_written();
      return ExitCode::kDone;
    }
    write_file_atomically(results / "history.json", checkpoint::history_json(result.run.history));
    if (result.stopped)
      throw UserError(str("stopped by a signal after ", result.run.epochs_done, " of ", s.schedule().epochs,
                          " epochs; the state is saved and the same command goes on from there"),
                      stopped);
    if (s.schedule().final_model == train::FinalModel::kLast && result.run.best_epoch > 0)
      write_model(checkpoint::load_best(s.trainer.checkpoints, result.run.best_epoch),
                  results / (options.name + ".best.onnx"), s.record);
    write_model(s.graph.clone(), output, s.record);
    app::write_training_record(results, s.record);
    listener->finish(true, "wrote " + output.string());
    log_info("wrote ", output.string());
    if (is_measured)
      app::tell_of_written(measure, measured_at_the_end(s, result.run, measure.metric), measure_written());
    if (!options.spec.folder.empty()) log_info(next_command(options, s.stage));
  } catch (const UserError& e) {
    try {
      if (listener) listener->finish(false, e.what());
    } catch (const UserError&) {
      // A full disk takes no last line either; the first error is the one to report.
    }
    throw;
  }
  return ExitCode::kDone;
}

ExitCode run_train(TrainOptions& options) {
  require_something_to_train(options);
  if (options.epochs > 0)
    options.spec.overrides.insert(options.spec.overrides.begin(), str("train.epochs=", options.epochs));
  // A network that is brought, in place of the zoo's.
  if (!options.spec.folder.empty() && options.spec.arch.empty() && !options.model.empty() &&
      options.stage != "int_infer") {
    const auto keys = app::keys_of_network(options.model, options.spec.input_shapes(options.model));
    options.spec.overrides.insert(options.spec.overrides.begin(), keys.begin(), keys.end());
  }
  const std::vector<std::string> remarks = options.spec.look_at_folder();
  if (options.stage == "calibration" || options.stage == "int_infer") {
    const StageFiles files{options.model, options.results, options.name, options.force};
    for (const std::string& remark : remarks) log_info(remark);
    return options.stage == "int_infer" ? run_integer_stage(options.spec, files)
                                        : run_calibration_stage(options.spec, files);
  }
  if (const std::optional<app::WorkersOptions> workers = workers_to_start(options.workers, options.spec.gpus)) {
    options.spec.load();  // one message where it is wrong
    if (options.spec.folder.empty() && !fs::is_regular_file(options.spec.path))
      fail_usage("-e ", options.spec.path, ": is no file, and each worker reads the experiment; write it to one");
    return app::run_workers(*workers);
  }
  const Ranks ranks = join_ranks(options.workers);
  if (ranks.first())
    for (const std::string& remark : remarks) log_info(remark);
  return train_network(options, ranks);
}

}  // namespace

Command train_command() {
  return train_command_with(run_train);
}

}  // namespace octet::cli
