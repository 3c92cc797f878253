#include "cli/flags.h"

#include <sys/stat.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>

#include "base/destination.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/output_guard.h"
#include "base/printable.h"
#include "base/standard_output.h"
#include "schema/tree.h"
#include "spec/folder.h"

namespace octet::cli {
namespace {

CLI::Option* needed(CLI::Option* option, Need need) {
  return option->required(need == Need::kRequired);
}

// What the option names is guarded as soon as it is parsed, so before a command reads anything.
CLI::Option* guarded(CLI::Option* option, const std::string& flag) {
  return option->each([flag](const std::string& path) {
    if (path != "-") guard_output(path, flag);
  });
}

bool ends_with(const std::string& path, const std::string& ending) {
  return std::filesystem::path(path).extension() == ending;
}

// CLI::Range lets NaN pass.
CLI::Validator real_range(double low, double high) {
  const auto check = [low, high](const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool holds = error == std::errc() && end == text.data() + text.size() && value >= low && value <= high;
    return holds ? std::string() : str("'", text, "' is not a number from ", low, " to ", high);
  };
  return CLI::Validator(check, "");
}

std::vector<ir::InputShape> given_shapes(const std::vector<std::string>& texts) {
  try {
    return ir::parse_input_shapes(texts);
  } catch (const UserError& e) {
    throw UserError(str("--input-shape ", e.what()), e.code());
  }
}

// A file of results that "-" sends to standard output.
CLI::Option* add_result_flag(CLI::App& app, const std::string& name, std::string& path, const std::string& what) {
  return add_written_file_flag(app, name, path, what)->each([](const std::string& file) {
    if (file == "-") reserve_standard_output();
  });
}

}  // namespace

std::vector<std::string> SpecFlags::look_at_folder() {
  if (folder.empty()) return {};
  if (!path.empty()) fail_usage("-e ", path, " and --data ", folder, " are two experiments; give one of them");
  spec::FolderExperiment found = spec::experiment_of_folder(folder, arch.empty() ? models::ModelOptions().arch : arch);
  text_ = std::move(found.yaml);
  return found.remarks;
}

bool SpecFlags::change_experiment() const {
  return !arch.empty() || !overrides.empty() || gpus > 0 || use_amp || fp16 || !loss_scale.empty() ||
         exif_orientation || !input_shape.empty();
}

spec::ExperimentSpec SpecFlags::load(const std::string& otherwise, const std::string& name) const {
  if (!task.empty()) {
    std::vector<std::string> names;
    for (const tasks::TaskInfo& info : tasks::all_tasks()) names.push_back(info.name);
    if (std::find(names.begin(), names.end(), task) == names.end())
      fail_usage("unknown task '", task, "'", did_you_mean(task, names),
                 " (this version has: ", schema::join(names, ", "), ")");
  }
  spec::LoadOptions options;
  options.overrides = overrides;
  options.default_task = task;
  // Both schedules, also where the file names another precision in `finetune`.
  const auto in_both = [&options](const std::string& change) {
    options.overrides.insert(options.overrides.begin(), {"train." + change, "finetune." + change});
  };
  if (use_amp && fp16) fail_usage("--use_amp and --fp16 name different types; give one of them");
  if (use_amp) in_both("precision=auto");
  if (fp16) in_both("precision=fp16");
  if (!loss_scale.empty()) in_both("amp.loss_scale=" + loss_scale);
  if (gpus > 0) in_both("device=cuda");
  if (!arch.empty()) options.overrides.insert(options.overrides.begin(), "model.arch=" + schema::yaml_text(arch));
  if (exif_orientation) options.overrides.push_back("data.exif_orientation=true");
  if (!input_shape.empty()) {
    given_shapes(input_shape);  // its error names the flag
    std::vector<std::string> quoted;
    for (const std::string& shape : input_shape) quoted.push_back(schema::yaml_text(shape));
    options.overrides.push_back("model.input_shape=[" + schema::join(quoted, ", ") + "]");
  }
  const spec::ExperimentSpec spec = !path.empty()     ? spec::load_experiment(path, options)
                                    : !folder.empty() ? spec::parse_experiment(text_, "--data " + folder, options)
                                                      : spec::parse_experiment(otherwise, name, options);
  if (!task.empty() && spec.task.name() != task)
    fail_usage(path.empty() ? name : path, ": is an experiment of task ", spec.task.name(), ", the command line says ",
               task);
  if (const std::string doubt = data::doubtful_normalization(spec.data.transform); !doubt.empty()) log_warning(doubt);
  return spec;
}

std::vector<ir::InputShape> SpecFlags::input_shapes(const std::string& model) const {
  if (!input_shape.empty() && ends_with(model, ".octet"))
    fail_usage("--input-shape is for sizes that an ONNX file leaves open; those of the engine ", model, " are fixed");
  if (!input_shape.empty() || path.empty()) return given_shapes(input_shape);
  const spec::LoadOptions options{.overrides = overrides, .check_files = false, .default_task = task, .quiet = true};
  return ir::parse_input_shapes(spec::load_experiment(path, options).model.input_shape);
}

void add_spec_flags(CLI::App& app, SpecFlags& flags, Need need, bool training) {
  app.add_option("TASK", flags.task, "Task of the experiment (default: what the file says)")->type_name("");
  needed(app.add_option("-e,--experiment_spec,--experiment_spec_file", flags.path,
                        "Experiment file (YAML; docs/spec.md, octet spec)")
             ->type_name("SPEC"),
         need);
  app.add_option("--set", flags.overrides, "Change a key of the experiment: --set train.epochs=3 (repeatable)")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  if (!training) return;
  add_number_flag(app, "--gpus", flags.gpus, 1, 1024,
                  "Train on this many GPUs instead of the spec's device, a process on each");
  app.add_flag("--use_amp", flags.use_amp, "Mixed precision where the hardware has it (train.precision=auto)");
  app.add_flag("--fp16", flags.fp16, "Mixed precision in FP16, with a dynamic loss scale (train.precision=fp16)");
  app.add_option("--loss_scale", flags.loss_scale, "Factor on the loss, 0: dynamic (train.amp.loss_scale)")
      ->type_name("FACTOR");
}

void add_folder_flags(CLI::App& app, SpecFlags& flags) {
  app.add_option("--data", flags.folder,
                 "Folder of images to write the experiment for, in place of -e: train/, val/ and test/, each with a "
                 "folder a class, or class folders alone")
      ->type_name("FOLDER");
  app.add_option("--arch", flags.arch, "Network of the zoo (model.arch; octet models)")->type_name("NETWORK");
}

void add_input_shape_flag(CLI::App& app, SpecFlags& flags) {
  app.add_option("--input-shape,--input_shape", flags.input_shape,
                 "Shape of an input of the ONNX file, for sizes that it leaves open: 1x3x320x320, NAME:1x3x320x320, "
                 "Nx3x320x320 (N: as the file has it); repeatable, for each input")
      ->allow_extra_args(false)
      ->type_name("[NAME:]SHAPE");
}

void add_exif_flag(CLI::App& app, SpecFlags& flags) {
  app.add_flag("--exif_orientation", flags.exif_orientation,
               "Turn images as their EXIF data say (default: as they are stored; data.exif_orientation)");
}

void OutputFlags::check() const {
  if (path.empty()) return;
  require_writable_output(path, force);
  if (ending.empty() || ends_with(path, ending)) return;
  for (const char* const other : {".octet", ".onnx"})
    if (ends_with(path, other))
      fail_usage("-o ", path, ": the output is ", ending == ".onnx" ? "an ONNX" : "an engine",
                 " file, and a name that ends in ", other, " would be taken for another kind; let it end in ", ending);
}

void add_output_flags(CLI::App& app, OutputFlags& flags, const std::string& what, const std::string& ending,
                      Need need) {
  flags.ending = ending;
  needed(guarded(app.add_option("-o,--output_file", flags.path, what)->type_name("FILE"), "-o"), need);
  app.add_flag("--force", flags.force, "Replace an output that exists");
}

CLI::Option* add_model_flag(CLI::App& app, std::string& path, const std::string& what, Need need) {
  return needed(app.add_option("-m,--model,--model_filename", path, what)->type_name("FILE"), need);
}

CLI::Option* add_results_flag(CLI::App& app, std::string& path, Need need) {
  return needed(app.add_option("-r,--results_dir", path, "Folder for everything that is written; made if missing")
                    ->type_name("FOLDER"),
                need);
}

CLI::Option* add_name_flag(CLI::App& app, std::string& name) {
  return app.add_option("-n,--model_name", name, "Name of the model's files, without ending")->type_name("NAME");
}

void add_key_flag(CLI::App& app) {
  app.add_option_function<std::string>(
         "-k,--key", [](const std::string&) { log_info("-k is not necessary: Octet's files are not encrypted"); },
         "Accepted and not necessary: files are not encrypted")
      ->type_name("KEY");
}

CLI::Option* add_json_flag(CLI::App& app, std::string& path) {
  return add_result_flag(app, "--json", path,
                         "Write the result as JSON to this file (-: standard output, which then has nothing else)");
}

CLI::Option* add_csv_flag(CLI::App& app, std::string& path, const std::string& what) {
  return add_result_flag(app, "--csv", path, "Write " + what + " as comma-separated values (-: standard output)");
}

CLI::Option* add_written_file_flag(CLI::App& app, const std::string& name, std::string& path, const std::string& what) {
  return guarded(app.add_option(name, path, what)->type_name("FILE"), name)->each([name](const std::string& file) {
    if (file == "-") return;
    try {
      require_writable_output(file, /*force=*/true);
    } catch (const UserError& e) {
      throw UserError(name + " " + e.what(), e.code());
    }
  });
}

CLI::Option* add_number_flag(CLI::App& app, const std::string& names, int64_t& value, int64_t low, int64_t high,
                             const std::string& what) {
  CLI::Validator range = CLI::Range(low, high);
  range.description("");  // else the help repeats it beside the name
  return app.add_option(names, value, what)->check(range)->type_name("N");
}

CLI::Option* add_number_flag(CLI::App& app, const std::string& names, double& value, double low, double high,
                             const std::string& what) {
  return app.add_option(names, value, what)->check(real_range(low, high))->type_name("X");
}

CLI::Option* add_numbers_flag(CLI::App& app, const std::string& names, std::vector<double>& values, double low,
                              double high, const std::string& what) {
  return app.add_option(names, values, what)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(real_range(low, high))
      ->type_name("X,...");
}

CLI::Option* limit_to(CLI::Option* option, const std::string& words) {
  const std::vector<std::string> known = CLI::detail::split(words, '|');
  const auto check = [known](const std::string& word) {
    if (std::find(known.begin(), known.end(), word) != known.end()) return std::string();
    return str("'", word, "' is none of ", schema::join(known, ", "), did_you_mean(word, known));
  };
  return option->check(CLI::Validator(check, ""))->type_name(words);
}

CLI::Option* add_batch_size_flag(CLI::App& app, int64_t& batch_size) {
  return add_number_flag(app, "--batch_size", batch_size, 1, 65'536, "Images at a time");
}

CLI::Option* add_threads_flag(CLI::App& app, int64_t& threads) {
  return add_number_flag(app, "--threads", threads, 0, 1024, "Threads; 0: as many as CPUs");
}

CLI::Option* add_isa_flag(CLI::App& app, std::string& isa) {
  return limit_to(app.add_option("--isa", isa, "Instruction set"),
                  "auto|scalar|generic|avx2|avx_vnni|avx512_vnni|amx_int8");
}

CLI::Option* add_data_type_flag(CLI::App& app, std::string& data_type) {
  return limit_to(app.add_option("--data_type", data_type, "Arithmetic of the result"), "fp32|int8");
}

CLI::Option* add_dump_passes_flag(CLI::App& app, std::string& folder) {
  return app.add_option("--dump-passes", folder, "Write the graph after each pass to this folder")->type_name("DIR");
}

CLI::Option* add_cal_cache_flag(CLI::App& app, std::string& path, const std::string& what) {
  return app.add_option("--cal_cache_file", path, what)->type_name("FILE");
}

CLI::Option* add_engine_file_flag(CLI::App& app, std::string& path, const std::string& what) {
  return app.add_option("--engine_file", path, what)->type_name("FILE");
}

void write_text_output(const std::string& path, const std::string& text) {
  if (path == "-") {
    write_result(printable_text(text));
  } else {
    write_file_atomically(path, text);
  }
}

}  // namespace octet::cli
