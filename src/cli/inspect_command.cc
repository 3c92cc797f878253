// octet inspect: what is in a model file.
#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/class_names.h"
#include "app/network_file.h"
#include "base/error.h"
#include "base/output_guard.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "dense/program.h"
#include "engine/engine_file.h"
#include "engine/model_info.h"
#include "engine/profiles.h"
#include "ir/print.h"
#include "ir/program_types.h"
#include "ir/summary.h"
#include "report/text_table.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InspectOptions {
  SpecFlags spec;
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
          {"operations_behind", summary.operations_behind},
          {"nodes", nodes}};
}

// Longer entries than a line are for programs; the classes are shown shortened.
std::string metadata_table(const app::Metadata& metadata) {
  constexpr size_t kLine = 100;
  std::string out;
  for (const auto& [key, value] : metadata)
    if (key != engine::key::kClasses && key != engine::key::kOldClasses && value.size() <= kLine &&
        value.find('\n') == std::string::npos)
      out += str("meta    ", printable_line(key), "  ", printable_line(value), "\n");
  const std::vector<std::string> names = app::class_names_of(metadata, "the file");
  std::string line;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string piece = (i > 0 ? ", " : "") + names[i];
    if (line.size() + piece.size() > kLine) {
      line += str(" ... (", names.size(), ")");
      break;
    }
    line += piece;
  }
  if (!names.empty()) out += "classes " + printable_line(line) + "\n";
  return out;
}

// The totals and nodes come from summary_table; what goes in and out, and what the file says about itself, stands
// above.
std::string table(const ir::GraphSummary& summary, const ir::Graph& graph) {
  std::string out;
  for (const ir::ValueSummary& value : summary.inputs)
    out += str("input   ", printable_line(value.name), "  ", type_string(value.type), "\n");
  for (const ir::ValueSummary& value : summary.outputs)
    out += str("output  ", printable_line(value.name), "  ", type_string(value.type), "\n");
  return out + metadata_table(graph.metadata) + ir::summary_table(summary);
}

Json buffers_json(const engine::Plan& plan, const std::vector<int>& ids) {
  Json out = Json::array();
  for (const int id : ids) {
    const engine::Buffer& buffer = plan.buffers[static_cast<size_t>(id)];
    out.push_back({{"name", buffer.name}, {"type", "float32"}, {"shape", buffer.shape}});
  }
  return out;
}

// Of an engine file.
struct Sizes {
  uintmax_t file = 0;
  size_t weights = 0;
  int64_t memory = 0;  // to work in, of the largest profile
};

Sizes sizes_of(const engine::Plan& plan, const std::string& path) {
  Sizes sizes{.file = std::filesystem::file_size(path),
              .weights = plan.constants ? plan.constants->bytes().size() : 0,
              .memory = plan.arena_bytes};
  for (const engine::Plan& profile : plan.profiles) sizes.memory = std::max(sizes.memory, profile.arena_bytes);
  return sizes;
}

int64_t int8_layers(const std::vector<engine::LayerInfo>& layers) {
  return std::count_if(layers.begin(), layers.end(), [](const auto& layer) { return layer.precision == "int8"; });
}

// What holds of it on CPUs that it was not compiled on.
std::string isa_text(const engine::Plan& plan, bool all_int8) {
  return str("runs on every CPU; compiled on ", plan.isa.empty() ? "an unknown one" : plan.isa,
             ", whose kernels other CPUs replace by their own; ",
             all_int8 ? "the results are the same bits on all"
                      : "INT8 results are the same bits on all, FP32 ones may differ in the last bits");
}

std::vector<ir::ValueSummary> values_of(const dense::Program& program) {
  std::vector<ir::ValueSummary> out;
  for (const ir::ProgramOutput& output : ir::program_outputs(program)) out.push_back({output.name, output.type});
  return out;
}

Json outputs_json(const engine::Plan& plan) {
  return plan.program ? values_json(values_of(*plan.program)) : buffers_json(plan, plan.outputs);
}

Json engine_json(const engine::Plan& plan, const std::vector<engine::LayerInfo>& layers, const Sizes& sizes) {
  Json steps = Json::array();
  for (const engine::LayerInfo& layer : layers)
    steps.push_back({{"name", layer.name}, {"op", layer.op}, {"precision", layer.precision}, {"reason", layer.reason}});
  return {{"name", plan.name},
          {"isa", plan.isa},
          {"metadata", plan.metadata},
          {"inputs", buffers_json(plan, plan.inputs)},
          {"outputs", outputs_json(plan)},
          {"profiles", plan.profiles.empty() ? Json(nullptr) : Json(engine::profile_list(plan))},
          {"file_bytes", sizes.file},
          {"arena_bytes", plan.arena_bytes},
          {"largest_arena_bytes", sizes.memory},
          {"constant_bytes", sizes.weights},
          {"int8_layers", int8_layers(layers)},
          {"layers", steps}};
}

std::string engine_table(const engine::Plan& plan, const std::vector<engine::LayerInfo>& layers, const Sizes& sizes) {
  std::string out;
  const auto add_buffers = [&](const char* what, const std::vector<int>& ids) {
    for (const int id : ids) {
      const engine::Buffer& buffer = plan.buffers[static_cast<size_t>(id)];
      out += str(what, printable_line(buffer.name), "  float32", ir::shape_string(buffer.shape), "\n");
    }
  };
  add_buffers("input   ", plan.inputs);
  if (!plan.program) add_buffers("output  ", plan.outputs);
  if (plan.program)
    for (const ir::ValueSummary& value : values_of(*plan.program))
      out += str("output  ", printable_line(value.name), "  ", type_string(value.type), "\n");
  out += metadata_table(plan.metadata);
  if (!plan.profiles.empty()) out += "profiles " + engine::profile_list(plan) + "\n";
  report::TextTable table({"layer", "operation", "precision", "why not INT8"});
  for (const engine::LayerInfo& layer : layers) table.add_row({layer.name, layer.op, layer.precision, layer.reason});
  const int64_t int8 = int8_layers(layers), all = static_cast<int64_t>(layers.size());
  const auto kib = [](auto bytes) { return (static_cast<int64_t>(bytes) + 1023) / 1024; };
  out += table.text();
  out += str("\n", int8, " of ", all, " layers in INT8", int8 < all ? str(", ", all - int8, " in FP32") : "", "\n");
  if (plan.program)
    out += str(dense::operation_count(*plan.program), " operations behind them, on sizes that come up in a run\n");
  out += str("file ", kib(sizes.file), " KiB, weights and tables ", kib(sizes.weights), " KiB, memory to work in ",
             kib(sizes.memory), " KiB", plan.profiles.empty() ? "" : " (of the largest profile)", "\n");
  return out + isa_text(plan, int8 == all) + "\n";
}

ExitCode inspect_engine(const InspectOptions& options) {
  if (options.text) fail_usage("--text shows the graph of an ONNX file; ", options.model, " is an engine");
  const std::shared_ptr<const engine::Plan> plan = engine::load_engine(options.model);
  const std::vector<engine::LayerInfo> layers = engine::layer_list(*plan, default_isa());
  const Sizes sizes = sizes_of(*plan, options.model);
  if (!options.json.empty())
    write_text_output(options.json,
                      engine_json(*plan, layers, sizes).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  else
    std::cout << engine_table(*plan, layers, sizes);
  return ExitCode::kDone;
}

ExitCode run_inspect(const InspectOptions& options) {
  require_file(options.model, "-m");
  const std::vector<ir::InputShape> shapes = options.spec.input_shapes(options.model);
  if (std::filesystem::path(options.model).extension() == ".octet") return inspect_engine(options);
  const ir::Graph graph = app::read_network(options.model, shapes);
  if (!options.json.empty())
    write_text_output(
        options.json,
        summary_json(ir::summarize(graph), graph).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  else if (options.text)
    std::cout << ir::to_text(graph);
  else
    std::cout << table(ir::summarize(graph), graph);
  return ExitCode::kDone;
}

}  // namespace

Command inspect_command() {
  return {.name = "inspect",
          .summary = "Show the nodes, shapes, parameters and cost of an ONNX model, or the layers of an engine",
          .details =
              "Reads the file as every other command does, so it also tells whether Octet takes the model. Prints "
              "a line for each node and the totals; with --json the same for programs, with --text the whole "
              "graph with attributes and constants. Of an engine file (.octet) it prints inputs, outputs, the layers "
              "with their precision, sizes, and on which CPUs it runs. The names of the classes are shown where the "
              "file has them.",
          .examples = {"octet inspect -m results/quickstart/model.qdq.onnx",
                       "octet inspect results/quickstart/model.octet"},
          .define = [](CLI::App& app) -> Run {
            auto options = std::make_shared<InspectOptions>();
            add_model_flag(app, options->model, "ONNX or .octet file", Need::kOptional);
            app.add_option("MODEL", options->model, "The same, without -m");
            add_input_shape_flag(app, options->spec);
            add_json_flag(app, options->json);
            app.add_flag("--text", options->text, "Print the graph with attributes and constants");
            return [options] { return run_inspect(*options); };
          }};
}

}  // namespace octet::cli
