// octet quantize: post-training quantization of a foreign ONNX file with nothing but a folder of images.
#include <CLI/App.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/apply_cache.h"
#include "app/export_target.h"
#include "app/image_files.h"
#include "app/network_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "cli/accuracy_flags.h"
#include "cli/calibration.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/json_output.h"
#include "cli/model_flags.h"
#include "cli/rules_flag.h"
#include "onnx/export.h"
#include "quant/lint_placement.h"
#include "quant/target.h"
#include "tasks/image_graph.h"

namespace octet::cli {
namespace {

struct QuantizeOptions {
  SpecFlags spec;
  ModelFlags input;
  std::string model, json, dump_passes, method, cache, equalize, bias_correction, target, runtime;
  std::vector<std::string> images, validation, rules, exclude, exclude_ops, only, inputs;
  int64_t count = 0;
  BoundFlags bounds;
  bool unsigned_activations = false, asymmetric = false, adaround = false, gptq = false;
  OutputFlags output;
};

bool names_method(const std::vector<std::string>& overrides) {
  return std::ranges::any_of(overrides, [](const std::string& o) { return o.starts_with("quant.calibration.method"); });
}

// What the command line says beside, or instead of, a spec.
spec::ExperimentSpec settings(const QuantizeOptions& options, const ir::Graph& graph, app::ModelFacts& model) {
  spec::ExperimentSpec spec = experiment_for(options.spec, options.input, model);
  if (!options.method.empty())
    spec.quant.calibration.method = schema::parse_enum<quant::CalibrationMethod>("calibration method", options.method);
  else if (options.spec.path.empty() && !options.bounds.given() && !names_method(options.spec.overrides))
    spec.quant.calibration.method = quant::CalibrationMethod::kSqnr;
  if (!options.equalize.empty())
    spec.quant.equalize = schema::parse_enum<quant::Equalization>("--equalize", options.equalize);
  if (!options.target.empty())
    spec.quant.placement.target = schema::parse_enum<quant::Target>("--target", options.target);
  if (!options.bias_correction.empty())
    spec.quant.bias_correction =
        schema::parse_enum<quant::BiasCorrection>("--bias-correction", options.bias_correction);
  if (options.adaround && spec.quant.adaround.iterations == 0) spec.quant.adaround.iterations = 1000;
  if (options.adaround) spec.quant.gptq.images = 0;
  if (options.gptq && spec.quant.gptq.images == 0) spec.quant.gptq.images = 500;
  if (options.gptq) spec.quant.adaround.iterations = 0;
  if (options.count > 0) spec.quant.calibration.images = options.count;
  if (options.unsigned_activations) spec.quant.placement.unsigned_activations = true;
  quant::PlacementOptions& placement = spec.quant.placement;
  if (options.asymmetric) placement.asymmetric_activations = true;
  take_rules(options.rules, placement.rules);
  for (const std::string& text : options.exclude) placement.exclude.push_back(quant::parse_selector(text));
  for (const std::string& op : options.exclude_ops) placement.exclude.push_back({.op = op});
  for (const std::string& text : options.only) placement.only.push_back(quant::parse_selector(text));
  for (const std::string& text : options.inputs) placement.inputs.push_back(quant::parse_selector(text));
  app::require_sizes(model.signature, spec.model, model.path);
  const data::NetworkInput input = tasks::image_input(graph);
  if (input.channels > 0) spec.model.input[0] = input.channels;
  if (input.height > 0) spec.model.input[1] = input.height;
  if (input.width > 0) spec.model.input[2] = input.width;
  return spec;
}

// What images say of the ranges; written as JSON where that was asked for.
void quantize(ir::Graph& graph, const spec::ExperimentSpec& spec, const QuantizeOptions& options) {
  const app::DataStream stream = app::open_calibration_files(
      spec, options.images, {spec.model.input.begin(), spec.model.input.end()}, tasks::images_at_a_time(graph));
  const quant::CalibrationSet observed =
      calibrate(graph, *stream.loader, spec.quant, options.dump_passes,
                options.runtime == "libtorch" ? Runtime::kLibTorch : Runtime::kEngine);
  if (!options.json.empty()) write_json_output(options.json, app::calibration_json(observed, spec.quant.calibration));
}

void quantize_to_goal(ir::Graph& graph, const spec::ExperimentSpec& spec, const QuantizeOptions& options) {
  const std::vector<int64_t> shape(spec.model.input.begin(), spec.model.input.end());
  app::AccuracyGoal goal{.bounds = options.bounds.bounds()};
  goal.calibration = [&](int64_t batch_size) {
    spec::ExperimentSpec own = spec;
    if (batch_size > 0) own.quant.calibration.batch_size = batch_size;
    return app::open_calibration_files(own, options.images, shape, tasks::images_at_a_time(graph));
  };
  goal.validation = [&](int64_t batch_size) {
    return app::open_image_files(spec, options.validation.empty() ? options.images : options.validation, shape,
                                 std::max<int64_t>(1, batch_size));
  };
  app::AccuracySearch found = reach_accuracy(graph, spec, spec.quant, goal);
  report_search(found, options.bounds, options.json);
  graph = std::move(found.graph);
  spec::ExperimentSpec settings = spec;
  settings.quant = found.options;
  const std::filesystem::path file = std::filesystem::path(options.output.path).replace_extension(".spec.yaml");
  write_file_atomically(file, spec::to_yaml(settings));
  log_info("wrote ", file.string(), "; octet quantize -e ", file.string(),
           " makes the same network of the same images without a search");
}

// A network has a hundred layers of which the same may be said.
void say_placement_notes(const ir::Graph& graph, const std::string& path) {
  constexpr int kShown = 3;  // of each kind
  std::map<quant::PlacementIssue, int> counts;
  for (const quant::PlacementNote& note : quant::lint_placement(graph))
    if (++counts[note.issue] <= kShown) log_info(note.message);
  for (const auto& [issue, count] : counts)
    if (count > kShown)
      log_info("the same of ", count - kShown, " more nodes (", quant::placement_issue_name(issue), "); octet lint ",
               path, " --target engine lists them");
}

ExitCode run_quantize(const QuantizeOptions& options) {
  require_file(options.model, "-m");
  if (!options.cache.empty()) require_file(options.cache, "--cal_cache_file");
  if (options.images.empty() == options.cache.empty())
    fail_usage("give either typical images (--images) or a calibration cache that has their ranges (--cal_cache_file)");
  if (!options.validation.empty() && !options.bounds.given())
    fail_usage("--validation says what --accuracy-drop, --latency-budget, --size-budget and --best-method judge by; ",
               "give one of them");
  options.output.check();
  ir::Graph graph = app::load_network(options.model, options.spec.input_shapes(options.model));
  app::ModelFacts model{.path = options.model, .metadata = graph.metadata, .signature = tasks::signature_of(graph)};
  const spec::ExperimentSpec spec = settings(options, graph, model);
  if (options.bounds.given())
    quantize_to_goal(graph, spec, options);
  else if (options.cache.empty())
    quantize(graph, spec, options);
  else
    app::apply_cache_file(graph, options.cache, spec.quant, options.dump_passes);
  graph.metadata["octet.stage"] = "calibration";
  describe_network(graph.metadata, model, spec, options.spec, options.input, /*fed=*/options.cache.empty());
  const quant::Target target = quant::target_of(graph);
  onnx::export_model(graph, options.output.path,
                     {.quantize_weights = true, .onnxruntime_forms = quant::profile(target).onnxruntime_forms});
  log_info("wrote ", options.output.path);
  if (target != quant::Target::kAny) log_info(app::integer_products_text(graph, schema::enum_name(target)));
  say_placement_notes(graph, options.output.path);
  return ExitCode::kDone;
}

}  // namespace

Command quantize_command() {
  return {
      .name = "quantize",
      .summary = "Quantize any ONNX network with a folder of images (PTQ)",
      .details =
          "Needs no spec: -m names the float model, --images files or folders of typical images (never the test "
          "set). --mean and --std are the normalization that the model was trained with (of pixels in 0 .. 1) where "
          "the "
          "model does not carry it (docs/metadata.md); the result carries what was taken. "
          "Writes QDQ ONNX that TensorRT, OpenVINO, ONNX Runtime and octet compile take. Instead of images "
          "--cal_cache_file takes the ranges that TensorRT or TAO found.",
      .examples = {"octet quantize -m resnet50.onnx --images photos/ --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 "
                   "-o resnet50.qdq.onnx",
                   "octet quantize -m model.onnx --images photos/ --target onnxruntime -o model.ort.onnx",
                   "octet quantize -m model.onnx --images photos/ --accuracy-drop 0.5 -o model.qdq.onnx",
                   "octet quantize -m model.onnx --images photos/ --latency-budget 2.5 -o model.qdq.onnx",
                   "octet quantize -m model.onnx --cal_cache_file cal.bin -o model.qdq.onnx"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<QuantizeOptions>();
        add_model_flag(app, options->model, "Float ONNX model");
        app.add_option("--images", options->images, "Image files or folders");
        add_cal_cache_flag(app, options->cache, "TensorRT's calibration cache of this network, instead of --images");
        add_output_flags(app, options->output, "QDQ ONNX file to write", ".onnx");
        add_model_flags(app, options->input);
        limit_to<quant::CalibrationMethod>(
            app.add_option("--method", options->method,
                           "Calibrator (default: that of the experiment; without one sqnr, which tries some)"));
        add_number_flag(app, "--count", options->count, 1, 1'000'000'000,
                        "Images to use at most (default: the spec's, 1000)");
        limit_to<quant::Equalization>(
            app.add_option("--equalize", options->equalize, "Even out the ranges of channels first (default: no)"));
        limit_to<quant::BiasCorrection>(
            app.add_option("--bias-correction", options->bias_correction,
                           "Take out of the biases by what quantization moves the means of channels: as the images "
                           "show it (also without a word behind it), or as the batch norms of the float network say"))
            ->expected(0, 1)
            ->default_str("empirical");
        CLI::Option* adaround =
            app.add_flag("--adaround", options->adaround,
                         "Learn for each weight whether it is rounded up or down, by what its layer gives (minutes)");
        app.add_flag("--gptq", options->gptq,
                     "Round weights so that those of the same layer make up for each other's errors (a tenth of that)")
            ->excludes(adaround);
        limit_to<quant::Target>(app.add_option(
            "--target", options->target,
            "Whose kernels will run it (default: any; onnxruntime wants more quantizers and int32 biases)"));
        add_rules_flag(app, options->rules);
        app.add_option("--exclude", options->exclude,
                       "Nodes that stay float: a glob of names, re:REGEX, op:OPERATOR or 'chain:Conv > Sigmoid' "
                       "(repeatable)")
            ->type_name("NODES");
        app.add_option("--only", options->only, "Quantize nothing but these nodes (repeatable)")->type_name("NODES");
        app.add_option("--quantize-inputs", options->inputs,
                       "Nodes whose inputs are quantized although no rule says so (repeatable)")
            ->type_name("NODES");
        app.add_option("--exclude-op", options->exclude_ops, "ONNX operator that stays float (repeatable)");
        app.add_flag("--unsigned", options->unsigned_activations, "u8 where a tensor cannot be negative (CPU targets)");
        app.add_flag("--asymmetric", options->asymmetric,
                     "Codes from the least to the largest value of an activation, with a zero point (CPU targets; "
                     "openvino and onnxruntime have it behind Swish, GELU and the like)");
        add_optional_spec_flags(app, options->spec);
        add_input_shape_flag(app, options->spec);
        add_exif_flag(app, options->spec);
        limit_to(
            app.add_option("--runtime", options->runtime,
                           "Who runs the float network on the images (default: engine, and libtorch what it lacks)"),
            "engine|libtorch");
        add_bound_flags(app, options->bounds,
                        "images without labels (--validation), by how often the prediction is that of the float "
                        "network; octet calibrate does it by a metric");
        app.add_option("--validation", options->validation,
                       "Image files or folders that --accuracy-drop and the budgets judge by (default: --images)");
        add_json_flag(app, options->json)->excludes("--cal_cache_file");
        CLI::Option* dump = add_dump_passes_flag(app, options->dump_passes);
        for (const char* flag : kBoundFlags) dump->excludes(flag);
        return [options] { return run_quantize(*options); };
      },
      .only_there = {"--accuracy-drop", "--latency-budget", "--size-budget", "--adaround", "--gptq"}};
}

}  // namespace octet::cli
