// octet spec: what an experiment file may say, and whether one says it right.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/flags.h"
#include "spec/tao.h"

namespace octet::cli {
namespace {

struct Options {
  std::string section, path;
  std::vector<std::string> overrides;
  bool markdown = false, tao = false, defaults = false;
};

ExitCode run(const Options& options) {
  if (options.markdown) {
    std::cout << spec::reference_markdown();
  } else if (options.tao) {
    std::cout << spec::tao_reference_markdown();
  } else if (!options.path.empty() || !options.overrides.empty()) {
    SpecFlags flags;
    flags.path = options.path;
    flags.overrides = options.overrides;
    std::cout << spec::to_yaml(flags.load());
  } else if (options.defaults) {
    std::cout << spec::to_yaml(spec::parse_experiment("", "(defaults)"));
  } else {
    std::cout << spec::section_help(options.section);
  }
  return ExitCode::kDone;
}

}  // namespace

Command spec_command() {
  return {
      .name = "spec",
      .summary = "Explain the keys of experiment files, or check one",
      .details =
          "Without options: every key with type, default, range and meaning. With a section: its keys. With a\n"
          "file: checks it, and prints it with every key resolved.",
      .examples = {"octet spec train.optimizer",
                   "octet spec -e examples/fashion_mnist_resnet20.yaml --set train.epochs=3"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<Options>();
        app.add_option("SECTION", options->section, "Section to explain, as in train.optimizer")->type_name("");
        app.add_option("-e,--experiment_spec", options->path, "Experiment file to check and print")->type_name("SPEC");
        app.add_option("--set", options->overrides, "Change a key: --set train.epochs=3 (repeatable)")
            ->allow_extra_args(false)
            ->type_name("KEY=VALUE");
        app.add_flag("--defaults", options->defaults, "Print a file with every key at its default");
        app.add_flag("--markdown", options->markdown, "Print the reference, docs/spec.md");
        app.add_flag("--tao", options->tao, "Print the reference of NVIDIA TAO's specifications, docs/tao.md");
        return [options] { return run(*options); };
      }};
}

}  // namespace octet::cli
