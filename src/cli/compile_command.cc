// octet compile: an ONNX file becomes an engine file.
#include <CLI/App.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "app/engine_build.h"
#include "app/network_file.h"
#include "app/stage_start.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/model_flags.h"
#include "engine/engine_file.h"
#include "engine/profiles.h"
#include "lower/lower.h"
#include "quant/fusion_model.h"
#include "report/text_table.h"

namespace octet::cli {
namespace {

struct CompileOptions {
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

// --profiles: "1,4,8"
std::vector<int64_t> read_batches(const CompileOptions& options) {
  std::vector<int64_t> out;
  for (const std::string& piece : pieces(options.profiles, ',')) {
    int64_t batch = 0;
    const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), batch);
    if (piece.find('x') != std::string::npos)
      fail_usage("--profiles ", options.profiles, ": '", piece,
                 "' is a shape, and profiles are batches (1,4,8); say each shape with --input-shape ", piece);
    if (error != std::errc() || end != piece.data() + piece.size() || batch < 1 || batch > 65'536)
      fail_usage("--profiles ", options.profiles, ": '", piece, "' is no batch from 1 to 65536");
    out.push_back(batch);
  }
  if (out.empty()) out.push_back(options.batch_size);
  return out;
}

// Each input has one shape, which goes with all profiles, or one for each of them, in the order of the command line.
// One profile without shapes where none are given.
std::vector<std::vector<ir::InputShape>> shapes_of_profiles(const std::vector<ir::InputShape>& given) {
  std::set<std::string> names;
  for (const ir::InputShape& shape : given)
    if (!shape.name.empty()) names.insert(shape.name);
  std::map<std::string, std::vector<ir::InputShape>> of_input;
  for (const ir::InputShape& shape : given)  // without a name it is of the only input, named elsewhere or not
    of_input[shape.name.empty() && names.size() == 1 ? *names.begin() : shape.name].push_back(shape);
  size_t count = 1;
  for (const auto& [name, shapes] : of_input) count = std::max(count, shapes.size());
  std::vector<std::vector<ir::InputShape>> out(count);
  for (const auto& [name, shapes] : of_input) {
    if (shapes.size() != 1 && shapes.size() != count)
      fail_usage("--input-shape is given ", shapes.size(), " times for '", name, "' and ", count,
                 " times for another input; give an input one shape for all profiles, or one for each");
    for (size_t i = 0; i < count; ++i) out[i].push_back(shapes[shapes.size() == 1 ? 0 : i]);
  }
  return out;
}

bool batch_is_free(const ir::Graph& graph) {
  return !graph.inputs().empty() && graph.inputs()[0]->type.shape && !graph.inputs()[0]->type.shape->empty() &&
         graph.inputs()[0]->type.shape->front() == ir::kDynamic;
}

// Without the names of tensors, which differ from layer to layer.
std::string kind_of(const std::string& reason) {
  std::string out;
  bool inside = false;
  for (const char c : reason) {
    if (c == '\'') inside = !inside;
    if (!inside) out += c;
  }
  return out;
}

// All layers, or what stays float: of those that do for one reason, the first.
std::string layer_table(const engine::Plan& plan, Isa isa, bool all) {
  std::vector<engine::LayerInfo> shown;
  std::map<std::string, std::pair<size_t, int64_t>> alike;  // the place of the first in `shown`, and how many there are
  for (const engine::LayerInfo& layer : engine::layer_list(plan, isa)) {
    if (!all && layer.reason.empty()) continue;
    const std::string kind = layer.op + "/" + layer.kernel + "/" + kind_of(layer.reason);
    const auto [entry, is_new] = alike.emplace(kind, std::pair(shown.size(), int64_t{0}));
    ++entry->second.second;
    if (all || is_new) shown.push_back(layer);
  }
  if (!all)
    for (const auto& [kind, place] : alike)
      if (const int64_t others = place.second - 1; others > 0)
        shown[place.first].name += str(" and ", others, others == 1 ? " other" : " others");
  report::TextTable table({"layer", "operation", "precision", "kernel", "why not INT8"});
  for (const engine::LayerInfo& layer : shown)
    table.add_row({layer.name, layer.op, layer.precision, layer.kernel, layer.reason});
  return table.rows() > 0 ? table.text() : "";
}

ExitCode run_compile(const CompileOptions& options) {
  require_file(options.model, "-m");
  options.output.check();
  const Isa isa = chosen_isa(options.isa);
  const std::vector<int64_t> batches = read_batches(options);
  std::vector<engine::Plan> plans;
  bool could_be_quantized = false;
  for (const std::vector<ir::InputShape>& shapes : shapes_of_profiles(options.spec.input_shapes(options.model))) {
    ir::Graph graph = app::load_network(options.model, shapes);
    could_be_quantized =
        !app::has_quantizers(graph) && std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                                   [](const auto& node) { return quant::is_weighted(*node); });
    SpecFlags spec = options.spec;
    spec.input_shape.clear();
    for (const ir::InputShape& shape : shapes) spec.input_shape.push_back(ir::input_shape_text(shape));
    describe_network(graph, options.model, spec, options.input);
    if (plans.empty() && options.profiles.empty() && options.batch_size == 0 && batch_is_free(graph))
      log_info("the batch is free: this engine takes 1 image at a time; --profiles 1,4,8 makes one file for several ",
               "batches");
    for (const int64_t batch : batches)
      plans.push_back(app::build_engine(
          graph, {.batch = batch, .input_shape = {}, .isa = isa, .dump_passes = options.dump_passes},
          {.threads = static_cast<int>(options.threads), .tactics_by_timing = options.tactics == "timing"}));
  }
  const engine::Plan plan = engine::merge_profiles(std::move(plans));
  if (!plan.profiles.empty()) log_info("profiles: ", engine::profile_list(plan));
  engine::save_engine(plan, options.output.path);
  std::cout << layer_table(plan, isa, options.layers);
  log_info("wrote ", options.output.path, ": ", app::engine_summary(plan, isa));
  if (could_be_quantized)
    log_info("nothing in ", options.model,
             " is quantized, so the engine computes in float32; octet quantize makes an INT8 network of it");
  return ExitCode::kDone;
}

}  // namespace

Command compile_command() {
  return {
      .name = "compile",
      .summary = "Compile an ONNX file for the INT8 CPU engine",
      .details =
          "Quantized parts become INT8, everything else stays FP32; a table lists what stays and why, one layer "
          "for all that stay for the same reason (--layers lists every one). A model "
          "without quantizers becomes an FP32 engine. The file runs on every CPU; its choice of kernels is made for "
          "this one (--isa, --threads), and --tactics timing makes it with a stopwatch.",
      .examples = {"octet compile -m results/model.qdq.onnx -o results/model.octet",
                   "octet compile -m model.qdq.onnx -o model.octet --tactics timing --threads 2",
                   "octet compile -m float.onnx -o float.octet --batch_size 8 --layers",
                   "octet compile -m model.qdq.onnx -o model.octet --profiles 1,4,8",
                   "octet compile -m free.onnx -o free.octet --input-shape Nx3x320x320 --input-shape Nx3x640x640"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<CompileOptions>();
        add_model_flag(app, options->model, "ONNX file, with or without quantizers", Need::kOptional);
        app.add_option("MODEL", options->model, "The same, without -m");
        add_output_flags(app, options->output, "Engine file to write (.octet)", ".octet");
        add_batch_size_flag(app, options->batch_size)
            ->description("Images a batch; without it that of the file, 1 where it is dynamic");
        app.add_option(
               "--profiles", options->profiles,
               "Several batches in one file that share the weights (1,4,8); several --input-shape of an input do "
               "the same for its sizes, and both together give every shape with every batch")
            ->excludes("--batch_size")
            ->type_name("LIST");
        add_input_shape_flag(app, options->spec);
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
        return [options] { return run_compile(*options); };
      }};
}

}  // namespace octet::cli
