// octet compile: an ONNX file becomes an engine file.
#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <memory>
#include <sstream>

#include "app/engine_build.h"
#include "app/network_file.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/model_flags.h"
#include "engine/engine_file.h"
#include "engine/profiles.h"
#include "lower/lower.h"
#include "report/text_table.h"

namespace octet::cli {
namespace {

struct Options {
  SpecFlags spec;
  ModelFlags input;
  std::string model, isa, dump_passes, profiles, tactics = "model";
  OutputFlags output;
  int64_t batch_size = 0, threads = 0;
  bool layers = false;
};

std::vector<std::string> pieces(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string piece; std::getline(in, piece, separator);) out.push_back(piece);
  return out;
}

// "1,4,8" or "1x3x224x224,4x3x224x224": a batch or a whole shape each.
std::vector<lower::CompileOptions> read_profiles(const Options& options, Isa isa) {
  std::vector<lower::CompileOptions> out;
  for (const std::string& profile : pieces(options.profiles, ',')) {
    std::vector<int64_t> sizes;
    for (const std::string& size : pieces(profile, 'x')) {
      int64_t value = 0;
      const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), value);
      if (error != std::errc() || end != size.data() + size.size() || value < 1 || value > 65'536)
        fail_usage("--profiles ", options.profiles, ": '", profile, "' is no batch (4) or shape (4x3x224x224)");
      sizes.push_back(value);
    }
    if (sizes.empty()) fail_usage("--profiles ", options.profiles, ": a profile is empty");
    lower::CompileOptions o{.isa = isa, .dump_passes = options.dump_passes};
    if (sizes.size() == 1)
      o.batch = sizes[0];
    else
      o.input_shape = sizes;
    out.push_back(std::move(o));
  }
  if (out.empty()) out.push_back({.batch = options.batch_size, .isa = isa, .dump_passes = options.dump_passes});
  return out;
}

bool batch_is_free(const ir::Graph& graph) {
  return !graph.inputs().empty() && graph.inputs()[0]->type.shape && !graph.inputs()[0]->type.shape->empty() &&
         graph.inputs()[0]->type.shape->front() == ir::kDynamic;
}

ExitCode run(const Options& options) {
  require_file(options.model, "-m");
  options.output.check();
  ir::Graph graph = app::load_network(options.model);
  describe_network(graph, options.model, options.spec, options.input);
  const Isa isa = chosen_isa(options.isa);
  if (options.profiles.empty() && options.batch_size == 0 && batch_is_free(graph))
    log_info(
        "the batch is free: this engine takes 1 image at a time; --profiles 1,4,8 makes one file for several batches");
  std::vector<engine::Plan> plans;
  for (const lower::CompileOptions& profile : read_profiles(options, isa))
    plans.push_back(app::build_engine(
        graph, profile,
        {.threads = static_cast<int>(options.threads), .tactics_by_timing = options.tactics == "timing"}));
  const engine::Plan plan = engine::merge_profiles(std::move(plans));
  if (!plan.profiles.empty()) log_info("profiles: ", engine::profile_list(plan));
  engine::save_engine(plan, options.output.path);
  report::TextTable table({"layer", "operation", "precision", "kernel", "why not INT8"});
  for (const engine::LayerInfo& layer : engine::layer_list(plan, isa))
    if (options.layers || !layer.reason.empty())
      table.add_row({layer.name, layer.op, layer.precision, layer.kernel, layer.reason});
  if (table.rows() > 0) std::cout << table.text();
  log_info("wrote ", options.output.path, ": ", app::engine_summary(plan, isa));
  return ExitCode::kDone;
}

}  // namespace

Command compile_command() {
  return {
      .name = "compile",
      .summary = "Compile an ONNX file for the INT8 CPU engine",
      .details =
          "Quantized parts become INT8, everything else stays FP32; a table lists what stays and why. A model "
          "without quantizers becomes an FP32 engine. The file runs on every CPU; its choice of kernels is made for "
          "this one (--isa, --threads), and --tactics timing makes it with a stopwatch.",
      .examples = {"octet compile -m results/model.qdq.onnx -o results/model.octet",
                   "octet compile -m model.qdq.onnx -o model.octet --tactics timing --threads 2",
                   "octet compile -m float.onnx -o float.octet --batch_size 8 --layers",
                   "octet compile -m model.qdq.onnx -o model.octet --profiles 1,4,8"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<Options>();
        add_model_flag(app, options->model, "ONNX file, with or without quantizers", Need::kOptional);
        app.add_option("MODEL", options->model, "The same, without -m");
        add_output_flags(app, options->output, "Engine file to write (.octet)", ".octet");
        add_batch_size_flag(app, options->batch_size)
            ->description("Images a batch; without it that of the file, 1 where it is dynamic");
        app.add_option("--profiles", options->profiles,
                       "Several sizes in one file that share the weights: batches (1,4,8) or whole shapes of the input "
                       "(1x3x224x224,1x3x448x448)")
            ->excludes("--batch_size")
            ->type_name("LIST");
        add_isa_flag(app, options->isa);
        limit_to(app.add_option("--tactics", options->tactics,
                                "How every convolution gets its kernel: by estimate (model), or by running the network "
                                "with all of them on this machine (timing, a few seconds)"),
                 "model|timing")
            ->capture_default_str();
        add_threads_flag(app, options->threads);
        app.add_flag("--layers", options->layers, "List every layer, not only those that are not INT8");
        add_optional_spec_flags(app, options->spec);
        add_model_flags(app, options->input);
        add_dump_passes_flag(app, options->dump_passes);
        add_key_flag(app);
        return [options] { return run(*options); };
      }};
}

}  // namespace octet::cli
