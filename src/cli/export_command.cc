// octet export: the deployment file, QDQ ONNX for a target.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "app/export_target.h"
#include "app/network_file.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "ir/infer.h"
#include "onnx/export.h"
#include "passes/free_batch.h"

namespace octet::cli {
namespace {

struct Options {
  SpecFlags spec;
  std::string model, target, data_type, dump_passes;
  int64_t opset = 0, batch_size = 0;
  OutputFlags output;
};

ExitCode run(const Options& options) {
  const spec::ExperimentSpec spec = options.spec.load();
  require_file(options.model, "-m");
  options.output.check();
  ir::Graph graph = app::load_network(options.model);
  const bool quantized = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                     [](const auto& node) { return node->kind == ir::OpKind::kFakeQuantize; });
  if (!quantized && options.data_type != "fp32")
    fail_usage(options.model,
               ": has no quantizers, so the exported file would run in floating point; run octet calibrate or "
               "octet quantize on it first, or give --data_type fp32 if that is meant");
  const std::string target = options.target.empty() ? spec.export_options.target : options.target;
  app::prepare_for_target(graph, target,
                          {.drop_quantizers = options.data_type == "fp32", .dump_passes = options.dump_passes});
  if (options.batch_size > 0) {
    passes::require_batch(graph, options.batch_size);
    ir::set_batch(graph, options.batch_size);
  }
  graph.metadata["octet.target"] = target;
  const int64_t opset = options.opset > 0 ? options.opset : spec.export_options.opset;
  onnx::export_model(graph, options.output.path, {.opset = static_cast<int>(opset), .quantize_weights = true});
  log_info("wrote ", options.output.path, " for ", target, ", opset ", opset);
  return ExitCode::kDone;
}

}  // namespace

Command export_command() {
  return {
      .name = "export",
      .summary = "Write QDQ ONNX for TensorRT, OpenVINO or ONNX Runtime",
      .details =
          "Folds batch norms and writes INT8 weights with DequantizeLinear, float biases, and a "
          "QuantizeLinear/DequantizeLinear pair for every quantized activation. A model without quantizers is refused "
          "unless --data_type fp32 says that a float file is meant.",
      .examples = {"octet export -m results/qat/model.onnx -o results/model.qdq.onnx",
                   "octet export -m results/qat/model.onnx -o model.trt.onnx --target tensorrt:8.6 --opset 13"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<Options>();
        add_spec_flags(app, options->spec, Need::kOptional);
        add_model_flag(app, options->model, "ONNX model: calibrated or trained quantization-aware");
        add_output_flags(app, options->output, "ONNX file to write", ".onnx");
        app.add_option("--target", options->target, "onnxruntime, openvino, tensorrt or tensorrt:VERSION");
        app.add_option("--opset", options->opset, "ONNX opset: 13, 19, 20 or 21")
            ->check(CLI::IsMember(std::vector<int64_t>{13, 19, 20, 21}));
        add_batch_size_flag(app, options->batch_size)->description("Fix the batch dimension; default: left open");
        add_data_type_flag(app, options->data_type);
        add_dump_passes_flag(app, options->dump_passes);
        add_key_flag(app);
        return [options] { return run(*options); };
      }};
}

}  // namespace octet::cli
