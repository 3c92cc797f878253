// octet convert spec: an experiment in YAML to a specification of NVIDIA TAO, and back.
#include <CLI/App.hpp>
#include <memory>

#include "base/files.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "spec/tao.h"

namespace octet::cli {
namespace {

struct ConvertSpecOptions {
  std::string input, stage = "float";
  SpecFlags spec;
  OutputFlags output;
};

// The file says the same in YAML; what Octet has no use for goes to the comments above.
std::string to_yaml_text(const spec::SourceTree& source) {
  std::string out = "# From a specification of NVIDIA TAO, by octet convert spec. docs/spec.md lists every key.\n";
  if (!source.unused.empty()) out += "# Not used:\n";
  for (const tao::UnusedField& field : source.unused) out += "#   " + field.field + ": " + field.reason + "\n";
  return out + schema::write_yaml(source.tree);
}

ExitCode run_convert_spec(const ConvertSpecOptions& options) {
  options.output.check();
  const spec::Stage stage = spec::parse_stage(options.stage);
  const std::string text = read_file_or_pipe(options.input);
  const spec::SourceTree source = spec::read_source(text, options.input, options.spec.task);
  // Every mistake is found before anything is written.
  const spec::LoadOptions load{.check_files = false, .default_task = options.spec.task};
  const spec::ExperimentSpec experiment = spec::parse_experiment(text, options.input, load);
  if (source.is_tao) {
    write_file_atomically(options.output.path, to_yaml_text(source));
  } else {
    const std::string specification = spec::to_tao(experiment, stage);
    for (const spec::KeyDifference& lost : spec::lost_in_tao(experiment, stage, specification))
      log_warning(options.input, ": '", lost.key, "' is ", lost.before,
                  ", which TAO's specification cannot say; there it is ", lost.after);
    write_file_atomically(options.output.path, specification);
  }
  log_info("wrote ", options.output.path);
  return ExitCode::kDone;
}

}  // namespace

Command convert_spec_command() {
  return {
      .name = "spec",
      .summary = "An experiment in YAML to a specification of NVIDIA TAO (protobuf text), and back",
      .details =
          "What the file is in, is found by looking at it. A specification of TAO becomes YAML with the keys that it "
          "gives; fields that Octet has no use for are named with the reason. An experiment in YAML becomes a "
          "specification of one training, --stage float or qat; what TAO cannot say is named. docs/tao.md lists all "
          "fields.",
      .examples = {"octet convert spec detectnet_v2_train.txt -o experiment.yaml",
                   "octet convert spec experiment.yaml -o detectnet_v2_retrain_qat.txt --stage qat"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<ConvertSpecOptions>();
        app.add_option("FILE", options->input, "Experiment: YAML, or a specification of TAO")
            ->required()
            ->type_name("");
        app.add_option("--task", options->spec.task, "Task of the experiment (default: what the file says)");
        limit_to(app.add_option("--stage", options->stage, "Training that a specification of TAO is of"), "float|qat")
            ->capture_default_str();
        add_output_flags(app, options->output, "File to write", "");
        return [options] { return run_convert_spec(*options); };
      }};
}

}  // namespace octet::cli
