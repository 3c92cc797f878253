// octet export: the files for deployment.
#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/class_names.h"
#include "app/clean_network.h"
#include "app/deepstream.h"
#include "app/engine_build.h"
#include "app/experiment_data.h"
#include "app/export_target.h"
#include "app/network_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "cli/calibration_images.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/model_flags.h"
#include "engine/engine_file.h"
#include "ir/infer.h"
#include "onnx/export.h"
#include "passes/free_batch.h"
#include "passes/place_fake_quant.h"
#include "quant/target.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  SpecFlags spec;
  ModelFlags input;
  std::string model, target, data_type, dump_passes, isa;
  std::string clean_file, cache_file, json_file, engine_file;
  std::string trt_version, cache_scope = "qat", image_folder;
  int64_t opset = 0, batch_size = 0, static_batch_size = -1, batches = 0;
  bool force_ptq = false, gen_ds_config = false;
  OutputFlags output;

  bool int8() const { return data_type.empty() || data_type == "int8"; }
  bool wants_ranges() const { return !cache_file.empty() || !json_file.empty() || !clean_file.empty(); }
};

// model.qdq.onnx, model.onnx -> model.clean.onnx
std::string clean_name(const std::string& output) {
  fs::path path(output);
  path.replace_extension();
  if (path.extension() == ".qdq") path.replace_extension();
  return path.string() + ".clean.onnx";
}

fs::path beside(const std::string& output, const char* name) {
  return fs::path(output).parent_path() / name;
}

// What the flags say together, and whether everything can be written, before any work.
void check(ExportOptions& options) {
  require_file(options.model, "-m");
  if (!options.int8())
    for (const auto& [given, flag] : {std::pair{!options.cache_file.empty(), "--cal_cache_file"},
                                      {!options.json_file.empty(), "--cal_json_file"},
                                      {!options.clean_file.empty(), "--clean_file"},
                                      {options.force_ptq, "--force_ptq"}})
      if (given) fail_usage(flag, ": is of --data_type int8, not of ", options.data_type);
  if (options.data_type == "fp16" && !options.engine_file.empty())
    fail_usage("--engine_file: the engine computes in INT8 and FP32, not in fp16");
  if (options.force_ptq && options.spec.path.empty())
    fail_usage("--force_ptq calibrates on images: name the experiment that has them (-e SPEC)");
  const bool runs_images = options.force_ptq || options.cache_scope == "all";
  if (!runs_images && (!options.image_folder.empty() || options.batches > 0))
    fail_usage(options.batches > 0 ? "--batches" : "--cal_image_dir",
               ": images are run with --force_ptq or --cache-scope all only");
  if (options.batch_size > 0 && options.engine_file.empty() && !options.gen_ds_config && options.batches == 0)
    log_warning("--batch_size changes nothing here; --static_batch_size fixes the batch of ONNX files");
  if (options.gen_ds_config && options.spec.path.empty())
    fail_usage("--gen_ds_config: name the experiment (-e SPEC), which has the normalization of the images");
  if (options.gen_ds_config && options.int8() && options.cache_file.empty())
    fail_usage(
        "--gen_ds_config: nvinfer builds INT8 engines with a calibration cache only; name it (--cal_cache_file)");
  if (options.cache_scope == "all" && options.cache_file.empty() && options.json_file.empty())
    fail_usage("--cache-scope all: of which cache? Name it (--cal_cache_file)");
  if (options.wants_ranges() && options.clean_file.empty()) options.clean_file = clean_name(options.output.path);
  options.output.check();
  std::vector<fs::path> others = {options.clean_file, options.cache_file, options.json_file, options.engine_file};
  if (options.gen_ds_config) {
    others.push_back(beside(options.output.path, "nvinfer_config.txt"));
    others.push_back(beside(options.output.path, "labels.txt"));
  }
  for (const fs::path& path : others)
    if (!path.empty() && path != "-") require_writable_output(path, options.output.force);
}

quant::TensorRtVersion cache_version(const ExportOptions& options, const std::string& target) {
  if (!options.trt_version.empty()) return quant::parse_tensorrt_version(options.trt_version, "--trt-version");
  if (const size_t colon = target.find(':'); colon != std::string::npos)
    return quant::parse_tensorrt_version(target.substr(colon + 1), "--target tensorrt:");
  const quant::TensorRtVersion version;
  log_warning("the cache is for TensorRT ", version.text(),
              ", which takes none of another version; --trt-version names yours");
  return version;
}

// --target, that of --trt-version, or the experiment's.
std::string chosen_target(const ExportOptions& options, const spec::ExperimentSpec& spec) {
  if (!options.target.empty()) return options.target;
  if (options.trt_version.empty()) return spec.export_options.target;
  const quant::TensorRtVersion version = quant::parse_tensorrt_version(options.trt_version, "--trt-version");
  return str("tensorrt:", version.major, ".", version.minor);
}

bool is_quantized(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const auto& node) { return node->kind == ir::OpKind::kFakeQuantize; });
}

// Files that are written when all are made.
class Files {
 public:
  void add(const fs::path& path, std::string bytes, std::string what) {
    files_.push_back({path, std::move(bytes), std::move(what)});
  }
  void write() const {
    for (const File& file : files_) {
      write_text_output(file.path.string(), file.bytes);
      log_info("wrote ", file.path.string(), ": ", file.what);
    }
  }

 private:
  struct File {
    fs::path path;
    std::string bytes, what;
  };
  std::vector<File> files_;
};

class Export {
 public:
  Export(const ExportOptions& options, spec::ExperimentSpec spec)
      : options_(options), spec_(std::move(spec)), target_(chosen_target(options, spec_)) {
    if (options.batches > 0)
      spec_.quant.calibration.images =
          options.batches * (options.batch_size > 0 ? options.batch_size : spec_.quant.calibration.batch_size);
  }

  ExitCode run() {
    graph_ = quantized_network();
    describe_network(graph_, options_.model, options_.spec, options_.input);
    app::prepare_for_target(graph_, target_,
                            {.drop_quantizers = !options_.int8(), .dump_passes = options_.dump_passes});
    if (options_.static_batch_size > 0) {
      passes::require_batch(graph_, options_.static_batch_size);
      ir::set_batch(graph_, options_.static_batch_size);
    }
    graph_.metadata["octet.target"] = target_;
    files_.add(options_.output.path, onnx_bytes(graph_),
               str(options_.int8() ? "QDQ ONNX" : "ONNX", " for ", target_, ", opset ", opset()));
    if (options_.wants_ranges()) add_clean_network();
    if (options_.gen_ds_config) add_deepstream();
    std::optional<engine::Plan> engine;
    const Isa isa = chosen_isa(options_.isa);
    if (!options_.engine_file.empty())
      engine =
          app::build_engine(graph_, {.batch = options_.batch_size, .input_shape = {}, .isa = isa, .dump_passes = {}});
    files_.write();
    if (options_.int8()) log_info(app::integer_products_text(graph_, target_));
    if (engine) {
      engine::save_engine(*engine, options_.engine_file);
      log_info("wrote ", options_.engine_file, ": engine, ", app::engine_summary(*engine, isa));
    }
    return ExitCode::kDone;
  }

 private:
  CalibrationImages images() const { return {spec_, options_.image_folder}; }

  // The network of -m: for INT8 with quantizers, its own or those of a new calibration.
  ir::Graph quantized_network() const {
    ir::Graph graph = app::load_network(options_.model, options_.spec.input_shapes(options_.model));
    if (!options_.int8()) return graph;
    if (options_.force_ptq) {
      const int removed = passes::remove_fake_quant(graph);
      if (removed > 0) log_info("took ", removed, " quantizers with their ranges out: --force_ptq calibrates anew");
      calibrate_with_images(graph, images(), options_.dump_passes);
    }
    if (!is_quantized(graph))
      fail_usage(
          options_.model,
          ": has no quantizers, so the exported file would run in floating point; run octet calibrate or "
          "octet quantize on it first, calibrate it here (-e SPEC --force_ptq), or give --data_type fp32 if that "
          "is meant");
    return graph;
  }

  int64_t opset() const { return options_.opset > 0 ? options_.opset : spec_.export_options.opset; }
  std::string onnx_bytes(const ir::Graph& graph) const {
    const bool integers = target_ == "onnxruntime" && quant::profile(quant::target_of(graph)).onnxruntime_forms;
    return onnx::export_bytes(graph, {.opset = static_cast<int>(opset()),
                                      .quantize_weights = true,
                                      .onnxruntime_forms = integers,
                                      .half_precision = options_.data_type == "fp16"});
  }

  void add_clean_network() {
    app::CleanNetwork clean = app::take_quantizers_out(graph_);
    for (const quant::CacheLoss& loss : clean.losses)
      log_warning("a cache does not carry ", loss.what, " (", app::some_of(loss.cases, "case"), ")");
    if (options_.cache_scope == "all")
      app::complete_ranges(clean, [&](const ir::Graph& graph, const std::vector<std::string>& tensors) {
        if (options_.spec.path.empty())
          fail_usage("--cache-scope all: images have to say the range of ", app::some_of(tensors),
                     "; name the experiment that has them (-e SPEC)");
        return measure_with_images(graph, tensors, images());
      });
    files_.add(options_.clean_file, onnx_bytes(clean.graph), "float ONNX, to which the ranges belong");
    const std::string count = str(clean.ranges.size(), clean.ranges.size() == 1 ? " range" : " ranges");
    if (!options_.cache_file.empty()) {
      const quant::TensorRtVersion version = cache_version(options_, target_);
      files_.add(options_.cache_file, quant::calibration_cache_text(app::make_cache(clean.ranges, version)),
                 str("calibration cache for TensorRT ", version.text(), ", ", count));
    }
    if (!options_.json_file.empty())
      files_.add(options_.json_file, app::ranges_json(clean.ranges).dump(1) + "\n", count);
  }

  void add_deepstream() {
    app::DeepStreamModel model{.onnx = options_.int8() ? options_.clean_file : options_.output.path,
                               .cache = options_.cache_file,
                               .precision = options_.int8()                ? app::NvinferPrecision::kInt8
                                            : options_.data_type == "fp16" ? app::NvinferPrecision::kFp16
                                                                           : app::NvinferPrecision::kFp32,
                               .batch = options_.static_batch_size > 0 ? options_.static_batch_size
                                        : options_.batch_size > 0      ? options_.batch_size
                                                                       : 1,
                               .signature = tasks::signature_of(graph_),
                               .class_names = app::class_names_of(graph_.metadata, options_.model),
                               .transform = app::evaluation_loader_options(spec_).transform};
    spec_.task->check(model.signature, 0);
    if (model.class_names.empty()) model.class_names = app::training_class_names(spec_);
    spec_.task->name_classes(model.class_names);
    const fs::path config = beside(options_.output.path, "nvinfer_config.txt");
    const app::DeepStreamFiles files = app::deepstream_files(model, *spec_.task, config.parent_path());
    for (const std::string& warning : files.warnings) log_warning(warning);
    files_.add(config, files.config, "for DeepStream's nvinfer");
    files_.add(beside(options_.output.path, "labels.txt"), files.labels, "names of the classes");
  }

  const ExportOptions& options_;
  spec::ExperimentSpec spec_;
  std::string target_;
  ir::Graph graph_;
  Files files_;
};

ExitCode run_export(ExportOptions& options) {
  spec::ExperimentSpec spec = options.spec.load();
  check(options);
  return Export(options, std::move(spec)).run();
}

void add_flags(CLI::App& app, ExportOptions& options) {
  add_spec_flags(app, options.spec, Need::kOptional);
  add_input_shape_flag(app, options.spec);
  add_model_flag(app, options.model, "ONNX model: calibrated or trained quantization-aware");
  add_model_flags(app, options.input);
  add_output_flags(app, options.output, "ONNX file to write; for INT8 with quantizers (QDQ)", ".onnx");
  limit_to(app.add_option("--data_type", options.data_type,
                          "Arithmetic of the result: int8 (default), or of a model without its quantizers"),
           "fp32|fp16|int8");
  app.add_option("--target", options.target, "onnxruntime, openvino, tensorrt or tensorrt:VERSION");
  limit_to(app.add_option("--opset,--target_opset", options.opset, "ONNX opset"), "13|19|20|21");
  add_number_flag(app, "--static_batch_size", options.static_batch_size, -1, 65'536,
                  "Fix the batch dimension of the ONNX files; -1: it is left open")
      ->capture_default_str();
  add_written_file_flag(app, "--cal_cache_file", options.cache_file,
                        "Write a calibration cache for TensorRT before 11, and the ONNX file that it belongs to");
  add_written_file_flag(app, "--clean_file", options.clean_file,
                        "That ONNX file, without quantizers; default: OUT with the ending .clean.onnx");
  add_written_file_flag(app, "--cal_json_file", options.json_file, "The ranges as JSON, as TAO writes them");
  app.add_option("--trt-version", options.trt_version,
                 "TensorRT that the cache is for, as in 8.6.1; also the --target where none is given")
      ->type_name("VERSION");
  limit_to(app.add_option("--cache-scope", options.cache_scope,
                          "Ranges in cache and JSON: of tensors with quantizers (qat), or of all tensors, as a DLA "
                          "wants (all)"),
           "qat|all")
      ->capture_default_str();
  app.add_flag("--force_ptq", options.force_ptq,
               "Calibrate anew on images of the experiment, whatever ranges the model has");
  app.add_option("--cal_image_dir", options.image_folder, "Folder of images to calibrate with instead")
      ->type_name("FOLDER");
  add_number_flag(app, "--batches", options.batches, 1, 1'000'000,
                  "Calibrate with that many times --batch_size images");
  add_written_file_flag(app, "--engine_file", options.engine_file,
                        "Write the engine file (.octet) of the network, too");
  add_batch_size_flag(app, options.batch_size)
      ->description("Images at a time: of the engine file, of --batches and of nvinfer");
  add_isa_flag(app, options.isa);
  app.add_flag("--gen_ds_config", options.gen_ds_config,
               "Write nvinfer_config.txt and labels.txt for DeepStream beside the ONNX file");
  add_dump_passes_flag(app, options.dump_passes);
  add_key_flag(app);
}

}  // namespace

Command export_command() {
  return {
      .name = "export",
      .summary = "Write the files for deployment: QDQ ONNX, calibration cache, engine, DeepStream's configuration",
      .details =
          "Folds batch norms and writes INT8 weights with DequantizeLinear, float biases, and a "
          "QuantizeLinear/DequantizeLinear pair for every quantized activation. A model without quantizers is refused "
          "unless --data_type fp32 says that a float file is meant. For TensorRT before 11 --cal_cache_file writes the "
          "ranges as a calibration cache beside an ONNX file without quantizers, and says what that cannot carry. "
          "Existing files are replaced with --force only. docs/deployment.md has more.",
      .examples = {"octet export -m results/qat/model.onnx -o results/model.qdq.onnx",
                   "octet export -m results/qat/model.onnx -o model.trt.onnx --target tensorrt:8.6 --opset 13",
                   "octet export -m results/qat/model.onnx -o model.onnx --cal_cache_file cal.bin --trt-version 8.6.1",
                   "octet export -e SPEC.yaml -m results/qat/model.onnx -o model.onnx --cal_cache_file cal.bin "
                   "--cache-scope all --gen_ds_config"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<ExportOptions>();
        add_flags(app, *options);
        return [options] { return run_export(*options); };
      }};
}

}  // namespace octet::cli
