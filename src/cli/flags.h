// Flags that several commands have. The names are those of TAO Toolkit, so that its command lines go on working.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "ir/input_shape.h"
#include "spec/experiment.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace octet::cli {

enum class Need { kRequired, kOptional };

// An experiment file and what the command line changes in it:
//   [TASK] -e SPEC --set KEY=VALUE ... --gpus N --use_amp --fp16 --loss_scale X
struct SpecFlags {
  std::string task;  // of tasks.def, or empty: what the file says
  std::string path;  // empty: all defaults, or what `folder` gives
  std::string folder, arch;
  std::vector<std::string> overrides;
  int64_t gpus = 0;  // 0: not given
  bool use_amp = false, fp16 = false;
  std::string loss_scale;  // empty: not given
  bool exif_orientation = false;
  std::vector<std::string> input_shape;  // --input-shape, as given

  // Looks at the folder, from then on load() gives the experiment for it, and returns what is to be said of it. Nothing
  // happens where none is named. UserError (exit 2).
  std::vector<std::string> look_at_folder();
  // Whether flags change what the file says.
  bool change_experiment() const;
  // The experiment with everything applied. `otherwise`: what is read, as YAML called `name`, where no file is named.
  // UserError (exit 2).
  spec::ExperimentSpec load(const std::string& otherwise = "", const std::string& name = "(no experiment file)") const;
  // Shapes of the inputs of the ONNX file `model`, which the command reads: of --input-shape, else of the experiment
  // file. UserError (exit 2), also for the flag beside an engine file.
  std::vector<ir::InputShape> input_shapes(const std::string& model) const;
  // As the folder gives it.
  const std::string& text_of_folder() const { return text_; }

 private:
  std::string text_;
};
// `training` adds --gpus, --use_amp, --fp16 and --loss_scale.
void add_spec_flags(CLI::App& app, SpecFlags& flags, Need need = Need::kRequired, bool training = false);

// --data FOLDER --arch NETWORK
void add_folder_flags(CLI::App& app, SpecFlags& flags);

// --input-shape [NAME:]1x3x320x320 (repeatable), of every command that reads an ONNX file
void add_input_shape_flag(CLI::App& app, SpecFlags& flags);

// --exif_orientation, of commands that take image files on the command line
void add_exif_flag(CLI::App& app, SpecFlags& flags);

// -o OUT --force
struct OutputFlags {
  std::string path;
  bool force = false;
  std::string ending;  // of the file that is written: ".octet" or ".onnx"

  // UserError (exit 2) when the output exists and --force was not given, its folder does not exist, it is a folder, or
  // it ends like the other kind of file. Call before any work starts. Nothing happens when no output was named.
  void check() const;
};
void add_output_flags(CLI::App& app, OutputFlags& flags, const std::string& what, const std::string& ending,
                      Need need = Need::kRequired);

// -m MODEL: an existing file (UserError from require_file below).
CLI::Option* add_model_flag(CLI::App& app, std::string& path, const std::string& what, Need need = Need::kRequired);
// -r RESULTS
CLI::Option* add_results_flag(CLI::App& app, std::string& path, Need need = Need::kRequired);
// -n NAME: of the files that are written, without ending
CLI::Option* add_name_flag(CLI::App& app, std::string& name);
// -k KEY: accepted, because TAO's command lines have it; files are not encrypted.
void add_key_flag(CLI::App& app);
// --json FILE ("-": standard output, where whatever else the command prints goes to standard error)
CLI::Option* add_json_flag(CLI::App& app, std::string& path);
// --csv FILE (likewise); `what` is in it: "a line for each output"
CLI::Option* add_csv_flag(CLI::App& app, std::string& path, const std::string& what);
// Any whole number within limits: add_number_flag(app, "--warm_up", runs, 0, 1000, "Runs before the clock starts").
CLI::Option* add_number_flag(CLI::App& app, const std::string& names, int64_t& value, int64_t low, int64_t high,
                             const std::string& what);
// Any number within limits; NaN is none.
CLI::Option* add_number_flag(CLI::App& app, const std::string& names, double& value, double low, double high,
                             const std::string& what);
// Numbers with commas between them, each within limits: one, or one for each channel.
CLI::Option* add_numbers_flag(CLI::App& app, const std::string& names, std::vector<double>& values, double low,
                              double high, const std::string& what);
// Lets an option take only some words, given as the help shows them ("fp32|int8"); another one is refused with the
// nearest of them.
CLI::Option* limit_to(CLI::Option* option, const std::string& words);
// The words of an enumeration of options.
template <typename Enum>
CLI::Option* limit_to(CLI::Option* option) {
  std::vector<std::string> words;
  for (const schema::EnumName<Enum>& entry : enum_names(Enum{})) words.push_back(entry.name);
  return limit_to(option, schema::join(words, "|"));
}
// --batch_size N
CLI::Option* add_batch_size_flag(CLI::App& app, int64_t& batch_size);
// --threads N (0: as many as CPUs)
CLI::Option* add_threads_flag(CLI::App& app, int64_t& threads);
// --isa NAME (empty: the best of this machine)
CLI::Option* add_isa_flag(CLI::App& app, std::string& isa);
// --data_type fp32|int8
CLI::Option* add_data_type_flag(CLI::App& app, std::string& data_type);
// --dump-passes DIR
CLI::Option* add_dump_passes_flag(CLI::App& app, std::string& folder);
// --cal_cache_file FILE
CLI::Option* add_cal_cache_flag(CLI::App& app, std::string& path, const std::string& what);
// --engine_file FILE
CLI::Option* add_engine_file_flag(CLI::App& app, std::string& path, const std::string& what);

// Any other file that is written, replaced without being asked; a UserError (exit 2) before any work when it cannot be.
CLI::Option* add_written_file_flag(CLI::App& app, const std::string& name, std::string& path, const std::string& what);

// Writes `text` to the file, atomically, or to standard output when `path` is "-".
void write_text_output(const std::string& path, const std::string& text);

}  // namespace octet::cli
