// octet lint: what each runtime makes of a quantized network.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/lint/lint.h"
#include "app/network_file.h"
#include "base/error.h"
#include "base/output_guard.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/json_output.h"

namespace octet::cli {
namespace {

struct LintOptions {
  SpecFlags spec;
  std::string model, json;
  std::vector<std::string> targets;
};

ExitCode run_lint(const LintOptions& options) {
  require_file(options.model, "-m");
  if (std::filesystem::path(options.model).extension() == ".octet")
    fail_usage(options.model, " is an engine, which octet inspect shows; lint reads ONNX files");
  const ir::Graph graph = app::read_network(options.model, options.spec.input_shapes(options.model));
  std::vector<app::LintVerdict> verdicts;
  for (const std::string& target : options.targets.empty() ? app::lint_targets() : options.targets)
    verdicts.push_back(app::lint(graph, target));
  if (options.json != "-") {
    if (options.targets.empty())
      std::cout << app::lint_table(verdicts);
    else
      for (const app::LintVerdict& verdict : verdicts) std::cout << app::lint_text(verdict);
  }
  if (!options.json.empty()) write_json_output(options.json, app::lint_json(verdicts));
  // Whoever names runtimes wants to know whether they take it; the table is for looking.
  for (const app::LintVerdict& verdict : verdicts)
    if (!options.targets.empty() && !verdict.is_taken()) return ExitCode::kCheckFailed;
  return ExitCode::kDone;
}

}  // namespace

Command lint_command() {
  return {
      .name = "lint",
      .summary = "Tell which runtimes take a quantized model, what they run in INT8, and why not the rest",
      .details =
          "Reads an ONNX file with quantizers, Octet's or of another tool, and says for each runtime (--target, else "
          "a table of all) whether it takes the file, how many convolutions and products it computes in INT8, which "
          "layers stay in float and why, and where codes are rescaled or become floats and back. Octet's engine is "
          "asked by compiling; of the others it knows the rules. Runs no image. The exit code is 3 where a runtime "
          "that --target names refuses the file.",
      .examples = {"octet lint model.qdq.onnx", "octet lint model.qdq.onnx --target tensorrt:8.6 --target dla",
                   "octet lint model.qdq.onnx --json -"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<LintOptions>();
        add_model_flag(app, options->model, "ONNX file", Need::kOptional);
        app.add_option("MODEL", options->model, "The same, without -m");
        app.add_option("--target", options->targets,
                       "A runtime: engine, tensorrt, tensorrt:8.6, dla, openvino, onnxruntime (repeatable; default: "
                       "a table of all)")
            ->allow_extra_args(false)
            ->type_name("RUNTIME");
        add_input_shape_flag(app, options->spec);
        add_json_flag(app, options->json);
        return [options] { return run_lint(*options); };
      }};
}

}  // namespace octet::cli
