#include "cli/training/stages.h"

#include <filesystem>

#include "app/engine_build.h"
#include "app/export_target.h"
#include "app/model_description.h"
#include "app/network_file.h"
#include "app/training/training_setup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "cli/evaluation.h"
#include "engine/engine_file.h"
#include "onnx/export.h"
#include "quant/target.h"
#include "train/torch_runtime.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

// The files of the stage, none of which is there yet or may be replaced.
std::vector<std::string> outputs(const StageFiles& files, std::initializer_list<const char*> endings) {
  std::vector<std::string> out;
  for (const char* ending : endings) out.push_back((fs::path(files.results) / (files.name + ending)).string());
  for (const std::string& path : out) {
    std::error_code error;
    if (fs::equivalent(path, files.model, error) && !error)
      fail_usage("-m ", files.model, ": the stage would replace it; give it another folder (-r) or name (-n)");
  }
  make_results_directory(files.results);
  for (const std::string& path : out) require_writable_output(path, files.force);
  return out;
}

}  // namespace

ExitCode run_calibration_stage(const SpecFlags& flags, const StageFiles& files) {
  const spec::ExperimentSpec spec = flags.load();
  if (!files.model.empty()) require_file(files.model, "-m");
  const std::string output = outputs(files, {".onnx"})[0];
  train::initialize_torch();
  ir::Graph graph = app::starting_network(spec, spec::Stage::kCalibration, files.model);
  app::keep_description(graph.metadata, spec, tasks::signature_of(graph));
  app::calibrate_network(graph, spec);
  onnx::export_model(graph, output, {.quantize_weights = false});
  log_info("wrote ", output);
  return ExitCode::kDone;
}

ExitCode run_integer_stage(const SpecFlags& flags, const StageFiles& files) {
  spec::ExperimentSpec spec = flags.load();
  if (files.model.empty())
    fail_usage("stage int_infer runs a quantized model: name that of stage qat or calibration with -m");
  require_file(files.model, "-m");
  const std::vector<std::string> paths = outputs(files, {".qdq.onnx", ".octet", ".json"});
  ir::Graph graph = app::load_network(files.model, flags.input_shapes(files.model));
  if (!app::has_quantizers(graph))
    fail_usage(files.model,
               ": holds no quantizers, and stage int_infer runs integers; name the model of stage qat or "
               "calibration");
  const std::string& target = spec.export_options.target;
  app::keep_description(graph.metadata, spec, tasks::signature_of(graph));
  app::prepare_for_target(graph, target, {});
  graph.metadata["octet.target"] = target;
  const std::string asked = spec.engine.isa ? isa_name(*spec.engine.isa) : "";
  const Isa isa = chosen_isa(asked);
  const engine::Plan plan =
      app::build_engine(graph, {.batch = spec.engine.batch_size, .input_shape = {}, .isa = isa, .dump_passes = {}});
  onnx::export_model(
      graph, paths[0],
      {.opset = static_cast<int>(spec.export_options.opset),
       .quantize_weights = true,
       .onnxruntime_forms = target == "onnxruntime" && quant::profile(quant::target_of(graph)).onnxruntime_forms});
  engine::save_engine(plan, paths[1]);
  log_info("wrote ", paths[1], ": engine, ", app::engine_summary(plan, isa));
  const std::unique_ptr<app::Model> model = app::open_engine_model(app::read_model_file(paths[1]), *spec.task,
                                                                   {.threads = spec.engine.threads, .isa = asked});
  evaluate(spec, *model, paths[1], 0, paths[2]);
  return ExitCode::kDone;
}

}  // namespace octet::cli
