// octet study: one experiment for several networks.
#include <CLI/App.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/study.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/other_program.h"
#include "models/zoo.h"
#include "report/text_table.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

struct StudyOptions {
  SpecFlags spec;
  std::string results;
  std::vector<std::string> networks;
};

std::string command_text(const std::vector<std::string>& arguments) {
  std::string out = "octet";
  for (const std::string& argument : arguments) out += " " + argument;
  return printable_line(out);
}

void print_titled(const report::Table& table) {
  std::printf("%s\n", printable_line(table.title).c_str());
  report::TextTable text(table.columns);
  for (const std::vector<std::string>& row : table.rows) text.add_row(row);
  std::cout << text.text() << '\n';
}

// What is done is skipped where the same experiment did it; another one's results would be taken for its own.
void claim_folder(const fs::path& folder, const spec::ExperimentSpec& spec) {
  const fs::path file = folder / "study.yaml";
  if (fs::exists(file)) {
    const spec::ExperimentSpec before = spec::load_experiment(file.string(), {.check_files = false, .quiet = true});
    const std::vector<spec::KeyDifference> changed = spec::differences(before, spec);
    if (!changed.empty())
      fail_usage(printable_line(folder.string()), ": was made with ", changed[0].key, " ", changed[0].before, ", not ",
                 changed[0].after, changed.size() > 1 ? " (and other keys)" : "",
                 "; name another results folder by -r, or remove this one");
  }
  write_file_atomically(file, spec::to_yaml(spec));
}

ExitCode run_study(const StudyOptions& options) {
  const spec::ExperimentSpec spec = options.spec.load();  // one message where it is wrong
  std::vector<std::string> spec_arguments;
  if (!options.spec.path.empty()) spec_arguments = {"-e", options.spec.path};
  for (const std::string& change : options.spec.overrides)
    spec_arguments.insert(spec_arguments.end(), {"--set", change});
  const std::vector<std::string> networks =
      options.networks.empty() ? std::vector<std::string>{spec.model.arch} : options.networks;
  for (const std::string& network : networks) {
    models::ModelOptions model = spec.model;
    model.arch = network;
    spec.task->build(model);  // UserError where there is no such network, or it does not fit
  }
  make_results_directory(options.results);
  std::vector<app::StudiedNetwork> studied;
  for (const std::string& network : networks) {
    const fs::path folder = fs::path(options.results) / network;
    make_results_directory(folder);
    spec::ExperimentSpec of_network = spec;
    of_network.model.arch = network;
    claim_folder(folder, of_network);
    for (const app::StudyStep& step : app::study_steps(spec_arguments, network, folder)) {
      if (fs::exists(step.output)) {
        log_info("done before: ", step.output.string());
        continue;
      }
      log_info("$ ", command_text(step.arguments));
      if (const int code = run_octet(step.arguments); code != 0) {
        log_info("the study goes on from here when what this step names is mended and the same command is given again");
        throw UserError(command_text(step.arguments) + ": ended with exit code " + std::to_string(code),
                        code == 2   ? ExitCode::kUsage
                        : code == 3 ? ExitCode::kCheckFailed
                                    : ExitCode::kFailed);
      }
    }
    studied.push_back({network, app::read_results_folder(folder)});
  }
  const report::Report report = app::study_report(studied);
  for (const report::Table& table : report.tables) print_titled(table);
  report::write_report(fs::path(options.results) / "study.html", report);
  write_file_atomically(fs::path(options.results) / "study.json", app::study_json(studied).dump(1) + "\n");
  log_info("wrote ", (fs::path(options.results) / "study.html").string(), " and study.json");
  return ExitCode::kDone;
}

}  // namespace

Command study_command() {
  return {
      .name = "study",
      .summary = "Run one experiment for several networks: what INT8 costs each in accuracy, and brings in speed",
      .details =
          "For each network: the float training, post-training quantization, the quantization-aware training and its "
          "float control, the engine, the proof that it computes the trained graph, and its time beside an FP32 "
          "engine. Ends with two tables, accuracy by stage and latency, and study.html with their charts. The "
          "commands are those that a user would type, and are shown; what is done is skipped when the study is "
          "started again, and a folder of another experiment is refused.",
      .examples =
          {"octet study -e examples/fashion_mnist_resnet20.yaml --networks resnet20 mobilenet_v2 -r results/study"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<StudyOptions>();
        add_spec_flags(app, options->spec);
        add_results_flag(app, options->results);
        app.add_option("--networks", options->networks, "Networks of the zoo (octet models); default: the spec's");
        return [options] { return run_study(*options); };
      }};
}

}  // namespace octet::cli
