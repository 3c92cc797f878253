// octet inspect: what is in a model file.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "ir/print.h"
#include "ir/summary.h"
#include "onnx/import.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model, json;
  bool text = false;
};

Json values_json(const std::vector<ir::ValueSummary>& values) {
  Json out = Json::array();
  for (const ir::ValueSummary& value : values) {
    Json shape = nullptr;  // rank unknown
    if (value.type.shape) {
      shape = Json::array();
      for (const int64_t dimension : *value.type.shape)
        shape.push_back(dimension == ir::kDynamic ? Json(nullptr) : Json(dimension));
    }
    out.push_back({{"name", value.name}, {"type", ir::data_type_name(value.type.data_type)}, {"shape", shape}});
  }
  return out;
}

Json macs_json(const std::optional<int64_t>& macs) {
  return macs ? Json(*macs) : Json(nullptr);
}

// Dynamic dimensions, unknown shapes and unknown multiply-accumulates are null.
Json summary_json(const ir::GraphSummary& summary, const ir::Graph& graph) {
  Json nodes = Json::array();
  for (const ir::NodeSummary& node : summary.nodes)
    nodes.push_back({{"name", node.name},
                     {"op", node.kind},
                     {"inputs", values_json(node.inputs)},
                     {"outputs", values_json(node.outputs)},
                     {"parameters", node.parameters},
                     {"macs", macs_json(node.macs)}});
  return {{"name", summary.name},
          {"opset", summary.opset},
          {"metadata", graph.metadata},
          {"inputs", values_json(summary.inputs)},
          {"outputs", values_json(summary.outputs)},
          {"parameters", summary.parameters},
          {"macs", macs_json(summary.macs)},
          {"constant_bytes", summary.constant_bytes},
          {"nodes", nodes}};
}

// The totals and nodes come from summary_table; what goes in and out, and what the file says about itself, stands
// above.
std::string table(const ir::GraphSummary& summary, const ir::Graph& graph) {
  std::string out;
  for (const ir::ValueSummary& value : summary.inputs)
    out += str("input   ", printable_line(value.name), "  ", type_string(value.type), "\n");
  for (const ir::ValueSummary& value : summary.outputs)
    out += str("output  ", printable_line(value.name), "  ", type_string(value.type), "\n");
  for (const auto& [key, value] : graph.metadata)
    if (value.size() <= 100) out += str("meta    ", printable_line(key), "  ", printable_line(value), "\n");  // longer ones are for programs
  return out + ir::summary_table(summary);
}

ExitCode run(const Options& options) {
  require_file(options.model, "-m");
  const ir::Graph graph = onnx::import_model(options.model);  // types inferred, verified
  if (!options.json.empty())
    write_text_output(
        options.json,
        summary_json(ir::summarise(graph), graph).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  else if (options.text)
    std::cout << ir::to_text(graph);
  else
    std::cout << table(ir::summarise(graph), graph);
  return ExitCode::kDone;
}

}  // namespace

Command inspect_command() {
  return {.name = "inspect",
          .summary = "Show the nodes, shapes, parameters and cost of an ONNX model",
          .details =
              "Reads the file as every other command does, so it also tells whether Octet takes the model. Prints "
              "a line for each node and the totals; with --json the same for programs, with --text the whole "
              "graph with attributes and constants.",
          .examples = {"octet inspect -m results/quickstart/model.qdq.onnx"},
          .define = [](CLI::App& app) -> Run {
            auto options = std::make_shared<Options>();
            add_model_flag(app, options->model, "ONNX file", Need::kOptional);
            app.add_option("MODEL", options->model, "The same, without -m");
            add_json_flag(app, options->json);
            app.add_flag("--text", options->text, "Print the graph with attributes and constants");
            return [options] { return run(*options); };
          }};
}

}  // namespace octet::cli
