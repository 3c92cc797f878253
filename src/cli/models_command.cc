// octet models: the networks that Octet builds itself.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "models/zoo.h"

namespace octet::cli {
namespace {

std::string table() {
  char line[256];
  std::snprintf(line, sizeof line, "%-18s %-13s %8s %12s %8s  %s\n", "name", "input", "classes", "parameters", "GMACs",
                "what");
  std::string out = line;
  for (const models::ModelInfo& model : models::all_models()) {
    const std::string input = str(model.input[0], "x", model.input[1], "x", model.input[2]);
    std::snprintf(line, sizeof line, "%-18s %-13s %8lld %12lld %8.3f  ", model.name.c_str(), input.c_str(),
                  static_cast<long long>(model.num_classes), static_cast<long long>(model.parameters), model.gmacs);
    out += line + model.description + "\n";
  }
  return out;
}

nlohmann::ordered_json as_json() {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const models::ModelInfo& model : models::all_models())
    out.push_back({{"name", model.name},
                   {"description", model.description},
                   {"input", model.input},
                   {"num_classes", model.num_classes},
                   {"parameters", model.parameters},
                   {"gmacs", model.gmacs}});
  return out;
}

}  // namespace

Command models_command() {
  return {.name = "models",
          .summary = "List the networks that Octet builds itself",
          .details = "Input, classes, parameters and multiply-accumulates are those of the published network.",
          .examples = {"octet models", "octet models --json -"},
          .define = [](CLI::App& app) -> Run {
            auto json = std::make_shared<std::string>();
            add_json_flag(app, *json);
            return [json] {
              if (json->empty()) std::cout << table();
              else write_text_output(*json, as_json().dump(2) + "\n");
              return ExitCode::kDone;
            };
          }};
}

}  // namespace octet::cli
