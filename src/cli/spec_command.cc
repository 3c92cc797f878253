// octet spec: what an experiment file may say, and whether one says it right.
#include <CLI/App.hpp>
#include <iostream>
#include <memory>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "spec/tao.h"

namespace octet::cli {
namespace {

struct SpecOptions {
  SpecFlags spec;
  std::string section;
  bool markdown = false, tao = false, defaults = false;
};

// Every key at its default, with images where a reader's may lie.
std::string defaults_text() {
  constexpr const char* kIntroduction =
      R"(# Every key of an experiment. It trains with the images of data/train and data/val, which have a folder for each class;
# `octet spec --data FOLDER` writes the few keys that matter for the images of a folder. auto: found from the images and
# the network.
)";
  constexpr const char* kImages =
      "model: {num_classes: auto, input: auto}\n"
      "data: {train: {format: image_folder, path: data/train}, val: {format: image_folder, path: data/val}, "
      "mean: auto, std: auto}\n";
  return kIntroduction + spec::to_yaml(spec::parse_experiment(kImages, "(defaults)", {.check_files = false}));
}

ExitCode run_spec(SpecOptions& options) {
  for (const std::string& remark : options.spec.look_at_folder()) log_info(remark);
  const bool changed = options.spec.change_experiment();
  if (options.markdown) {
    std::cout << spec::reference_markdown();
  } else if (options.tao) {
    std::cout << spec::tao_reference_markdown();
  } else if (!options.spec.folder.empty() && !options.defaults && options.spec.overrides.empty()) {
    options.spec.load();  // it holds
    std::cout << options.spec.text_of_folder();
  } else if (!options.spec.path.empty() || !options.spec.folder.empty() || changed) {
    std::cout << spec::to_yaml(options.spec.load());
  } else if (options.defaults) {
    std::cout << defaults_text();
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
          "file: checks it, and prints it with every key resolved. With --data: a short experiment for a folder of\n"
          "images, as octet train --data takes it.",
      .examples = {"octet spec train.optimizer", "octet spec --data photos/ --arch resnet18 > photos.yaml",
                   "octet spec -e examples/fashion_mnist_resnet20.yaml --set train.epochs=3"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<SpecOptions>();
        app.add_option("SECTION", options->section, "Section to explain, as in train.optimizer")->type_name("");
        app.add_option("-e,--experiment_spec", options->spec.path, "Experiment file to check and print")
            ->type_name("SPEC");
        add_folder_flags(app, options->spec);
        app.add_option("--set", options->spec.overrides, "Change a key: --set train.epochs=3 (repeatable)")
            ->allow_extra_args(false)
            ->type_name("KEY=VALUE");
        app.add_flag("--defaults", options->defaults, "Print a file with every key at its default, which runs");
        app.add_flag("--markdown", options->markdown, "Print the reference, docs/spec.md");
        app.add_flag("--tao", options->tao, "Print the reference of NVIDIA TAO's specifications, docs/tao.md");
        return [options] { return run_spec(*options); };
      }};
}

}  // namespace octet::cli
