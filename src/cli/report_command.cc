// octet report: gathers what the other commands wrote in a results folder into one table, report.html and summary.json.
#include <CLI/App.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>

#include "app/experiment_data.h"
#include "app/results_folder.h"
#include "app/results_report.h"
#include "base/cpu_features.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "report/html_report.h"
#include "report/text_table.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  SpecFlags spec;
  std::string results;
};

// Those that were evaluated, where they are there: a report is also made of results from elsewhere.
std::unique_ptr<data::Dataset> evaluated_images(const app::ResultsFolder& results, const spec::ExperimentSpec& spec) {
  if (!results.has_worst_images()) return nullptr;
  try {
    return std::move(app::open_evaluation_data(spec).dataset);
  } catch (const UserError& e) {
    log_warning("the worst images are not drawn: ", e.what());
    return nullptr;
  }
}

ExitCode run_report(const ReportOptions& options) {
  for (const char* const name : {"summary.json", "report.html"}) guard_output(fs::path(options.results) / name, "-r");
  const spec::ExperimentSpec spec = options.spec.load();
  const app::ResultsFolder results = app::read_results_folder(options.results);
  if (results.empty())
    fail(options.results,
         ": holds no results to report on; expected the files that ./quickstart.sh writes, as float.json "
         "of octet evaluate or bench.json of octet bench");
  const report::Table table = app::stage_table(results);
  report::TextTable text(table.columns);
  for (const auto& row : table.rows) text.add_row(row);
  std::cout << cpu_model_name() << "\n\n" << text.text() << "\n";
  if (!results.verification.is_null() && results.verification.contains("agree"))
    std::printf("engine and trained graph agree on %lld of %lld images; %s\n",
                results.verification.at("agree").get<long long>(), results.verification.at("images").get<long long>(),
                results.verified() ? "verified" : "NOT verified");
  else if (!results.verification.is_null())
    std::printf("the codes of the engine are %sproven to be the model's\n", results.verified() ? "" : "NOT ");
  write_file_atomically(results.path / "summary.json", results.summary().dump(1) + "\n");
  report::write_report(results.path / "report.html",
                       app::results_report(results, spec, evaluated_images(results, spec).get()));
  log_info("wrote ", (results.path / "report.html").string(), " and ", (results.path / "summary.json").string());
  return ExitCode::kDone;
}

}  // namespace

Command report_command() {
  return {.name = "report",
          .summary = "Make the table, report.html and summary.json of a results folder",
          .details =
              "Reads what evaluate, calibrate, verify and bench wrote with --json and the histories of train, under "
              "the names that ./quickstart.sh uses. Missing parts are left out.",
          .examples = {"octet report -e examples/fashion_mnist_resnet20.yaml -r results/quickstart"},
          .define = [](CLI::App& app) -> Run {
            auto options = std::make_shared<ReportOptions>();
            add_spec_flags(app, options->spec);
            add_results_flag(app, options->results);
            return [options] { return run_report(*options); };
          }};
}

}  // namespace octet::cli
