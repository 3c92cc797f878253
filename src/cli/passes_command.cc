// octet passes: which passes there are, and which stage runs them.
#include <CLI/App.hpp>
#include <iostream>

#include "app/export_target.h"
#include "cli/commands.h"
#include "lower/rewrites.h"
#include "passes/pipelines.h"
#include "report/text_table.h"

namespace octet::cli {
namespace {

ExitCode run_passes() {
  std::vector<passes::Stage> stages = passes::stages();
  stages.push_back({"export --target tensorrt", "behind these", app::target_passes("tensorrt")});
  stages.push_back({"compile", "before the lowering to a plan", lower::compile_passes()});
  for (const passes::Stage& stage : stages) {
    std::cout << "octet " << stage.name << ": " << stage.description << "\n";
    report::TextTable table({"pass", "what"});
    for (const passes::Pass& pass : stage.passes) table.add_row({pass.name, pass.description});
    std::cout << table.text() << "\n";
  }
  return ExitCode::kDone;
}

}  // namespace

Command passes_command() {
  return {.name = "passes",
          .summary = "List what each stage does to the graph of a network",
          .details =
              "One table for each stage, its passes in the order in which they run. calibrate, quantize, export and "
              "compile write the graph after each of theirs with --dump-passes DIR, and -v tells what each changed.",
          .examples = {"octet passes"},
          .define = [](CLI::App&) -> Run { return [] { return run_passes(); }; }};
}

}  // namespace octet::cli
