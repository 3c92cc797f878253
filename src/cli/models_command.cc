// octet models: the networks that Octet builds itself.
#include <CLI/App.hpp>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/pretrained.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "models/zoo.h"
#include "onnx/export.h"
#include "report/text_table.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ModelsOptions {
  std::string arch, layout = "torchvision", weights, json;
  OutputFlags output;
  int64_t num_classes = 0;     // 0: as published
  std::vector<int64_t> input;  // empty: as published
  int64_t seed = 1;
  int opset = onnx::ExportOptions().opset;
};

std::string input_text(const std::array<int64_t, 3>& input) {
  return str(input[0], "x", input[1], "x", input[2]);
}

std::string table() {
  report::TextTable table({"name", "input", "classes", "parameters", "GMACs", "what"});
  for (const models::ModelInfo& model : models::all_models())
    table.add_row({model.name, input_text(model.input), str(model.num_classes), str(model.parameters), str(model.gmacs),
                   model.description});
  return table.text();
}

Json as_json() {
  Json out = Json::array();
  for (const models::ModelInfo& model : models::all_models())
    out.push_back({{"name", model.name},
                   {"description", model.description},
                   {"input", model.input},
                   {"num_classes", model.num_classes},
                   {"parameters", model.parameters},
                   {"gmacs", model.gmacs}});
  return out;
}

ExitCode run_models(const ModelsOptions& options) {
  if (!options.weights.empty()) require_file(options.weights, "--convert");
  if (options.arch.empty()) {
    if (!options.output.path.empty() || !options.weights.empty())
      fail_usage("models: -o needs the NAME of a network, as in: octet models resnet20 -o OUT");
    if (options.json.empty())
      std::cout << table();
    else
      write_text_output(options.json, as_json().dump(2) + "\n");
    return ExitCode::kDone;
  }
  models::ModelOptions model = models::default_options(options.arch);
  if (options.output.path.empty()) fail_usage("models: say where to write ", options.arch, ": -o FILE.onnx");
  options.output.check();
  if (options.num_classes > 0) model.num_classes = options.num_classes;
  if (!options.input.empty()) std::copy_n(options.input.begin(), 3, model.input.begin());
  if (options.layout == "tao") model.layout = models::Layout::kTao;
  model.seed = static_cast<uint64_t>(options.seed);
  ir::Graph graph = models::build_model(model);
  if (!options.weights.empty()) app::take_all_weights(graph, options.weights);
  onnx::export_model(graph, options.output.path, {.opset = options.opset});
  log_info("wrote ", options.arch, " (", input_text(model.input), ", ", model.num_classes, " classes, ",
           options.weights.empty() ? "random weights" : "the weights of " + options.weights, ") to ",
           options.output.path);
  return ExitCode::kDone;
}

}  // namespace

Command models_command() {
  return {.name = "models",
          .summary = "List the networks that Octet builds itself, or write one as ONNX",
          .details =
              "Without a name: the list, with input, classes, parameters and multiply-accumulates of the published "
              "networks. With a name and -o: that network with random weights, the same bytes for the same seed, or "
              "with the "
              "weights of a file of torchvision, timm, Keras or TAO (--convert), matched by name.",
          .examples = {"octet models", "octet models resnet20 -o resnet20.onnx --input 1,28,28 --num_classes 10",
                       "octet models resnet50 --convert resnet50-11ad3fa6.pth -o resnet50.onnx"},
          .define = [](CLI::App& app) -> Run {
            auto options = std::make_shared<ModelsOptions>();
            app.add_option("NAME", options->arch, "Network to write")->type_name("");
            add_output_flags(app, options->output, "ONNX file to write", ".onnx", Need::kOptional);
            app.add_option(
                   "--convert", options->weights,
                   "Weights for the network, all of them: .pth (nothing in it is run), .safetensors, .h5, .onnx")
                ->type_name("FILE");
            add_number_flag(app, "--num_classes", options->num_classes, 1, 1'000'000, "Outputs of the classifier");
            app.add_option("--input", options->input, "Shape of one image")
                ->delimiter(',')
                ->expected(3)
                ->type_name("C,H,W")
                ->check(CLI::Range(int64_t{1}, int64_t{16'384}).description(""));
            limit_to(app.add_option("--layout", options->layout, "Names of the layers: tao is NVIDIA TAO"),
                     "torchvision|tao");
            add_number_flag(app, "--seed", options->seed, 0, std::numeric_limits<int64_t>::max(), "Of the weights");
            limit_to(app.add_option("--opset", options->opset, "ONNX opset of the file"), "13|19|20|21");
            add_json_flag(app, options->json);
            return [options] { return run_models(*options); };
          }};
}

}  // namespace octet::cli
