#include "cli/training_setup.h"

#include <algorithm>

#include "base/cpu_features.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "cli/network_file.h"
#include "ir/infer.h"
#include "ir/verify.h"
#include "models/zoo.h"
#include "onnx/import.h"
#include "passes/pipelines.h"
#include "tasks/classification.h"
#include "tasks/image_graph.h"

namespace octet::cli {
namespace {

using spec::Stage;

std::string optimizer_type(spec::OptimizerType type) {
  switch (type) {
    case spec::OptimizerType::kSgd: return "sgd";
    case spec::OptimizerType::kAdam: return "adam";
    case spec::OptimizerType::kAdamW: return "adamw";
  }
  return "";
}

train::ScheduleOptions schedule_options(const spec::TrainSpec& t) {
  train::ScheduleOptions o;
  switch (t.schedule.type) {
    case spec::ScheduleType::kConstant: o.type = "constant"; break;
    case spec::ScheduleType::kStep: o.type = "step"; break;
    case spec::ScheduleType::kCosine: o.type = "cosine"; break;
    case spec::ScheduleType::kLinear: o.type = "linear"; break;
    case spec::ScheduleType::kSoftStart: o.type = "soft_start"; break;
  }
  o.warmup = t.schedule.warmup;
  o.min_factor = t.schedule.min_lr / t.optimizer.lr;
  o.milestones = t.schedule.steps;
  o.gamma = t.schedule.gamma;
  o.soft_start = t.schedule.soft_start;
  o.annealing = t.schedule.annealing;
  return o;
}

// Takes constants of `source` by name into `graph` where name and shape agree; says how many did.
void take_weights(ir::Graph& graph, const ir::Graph& source, const std::string& path) {
  int taken = 0, all = 0;
  std::string missing;
  for (ir::Value* constant : graph.constants()) {
    if (constant->type.data_type != ir::DataType::kFloat32) continue;
    all++;
    const ir::Value* twin = source.find_value(constant->name);
    if (twin && twin->is_constant() && twin->type == constant->type) {
      graph.set_constant(constant, *twin->constant);
      taken++;
    } else if (missing.empty()) {
      missing = constant->name;
    }
  }
  if (taken == 0) fail(path, ": holds no weight that fits the network; names and shapes must agree");
  log_info(path, ": took ", taken, " of ", all, " constants", missing.empty() ? "" : ", the first without is " + missing);
}

bool has_quantizers(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const auto& n) { return n->kind == ir::OpKind::kFakeQuantize; });
}

}  // namespace

train::Precision training_precision(const spec::TrainSpec& schedule) {
  const bool fast = schedule.device == spec::Device::kCuda || has_fast_bf16();
  switch (schedule.precision) {
    case spec::Precision::kFp32: return train::Precision::kFloat32;
    case spec::Precision::kBf16:
      if (!fast) log_warning("this CPU has no BF16 instructions; precision: fp32 would be faster than bf16 here");
      return train::Precision::kBFloat16;
    case spec::Precision::kAuto: break;
  }
  return fast ? train::Precision::kBFloat16 : train::Precision::kFloat32;
}

train::ExecutorOptions executor_options(const spec::ExperimentSpec& spec, const spec::TrainSpec& schedule) {
  train::ExecutorOptions o;
  o.device = schedule.device == spec::Device::kCuda ? "cuda" : "cpu";
  o.precision = training_precision(schedule);
  o.seed = static_cast<uint64_t>(schedule.seed);
  o.activation_averaging_constant = static_cast<float>(spec.quant.activations.averaging_constant);
  o.weight_averaging_constant = static_cast<float>(spec.quant.weights.averaging_constant);
  return o;
}

train::TrainerOptions trainer_options(const spec::ExperimentSpec& spec, Stage stage,
                                      const std::filesystem::path& results) {
  const spec::TrainSpec& t = spec.schedule_for(stage);
  train::TrainerOptions o;
  o.epochs = t.epochs;
  o.optimizer.type = optimizer_type(t.optimizer.type);
  o.optimizer.lr = t.optimizer.lr;
  o.optimizer.momentum = t.optimizer.momentum;
  o.optimizer.nesterov = t.optimizer.nesterov;
  o.optimizer.beta1 = t.optimizer.betas.at(0);
  o.optimizer.beta2 = t.optimizer.betas.at(1);
  o.optimizer.eps = t.optimizer.eps;
  o.optimizer.weight_decay = t.optimizer.weight_decay;
  o.optimizer.no_decay.clear();
  for (spec::NoDecay group : t.optimizer.no_decay)
    o.optimizer.no_decay.push_back(group == spec::NoDecay::kBias ? "bias" : "norm");
  o.schedule = schedule_options(t);
  o.clip_grad_norm = t.clip_grad_norm;
  o.ema = t.ema.enable;
  o.ema_decay = t.ema.decay;
  o.checkpoint_interval = t.checkpoint_interval;
  o.keep_checkpoints = t.keep_checkpoints;
  o.evaluate_interval = t.evaluate_interval;
  o.checkpoints = results / "checkpoints";
  o.executor = executor_options(spec, t);
  if (stage == Stage::kControl) o.executor.precision = train::Precision::kFloat32;
  o.stop_requested = stop_requested;
  return o;
}

ir::Graph starting_network(const spec::ExperimentSpec& spec, Stage stage, const std::string& model) {
  const std::string file = !model.empty() ? model : stage == Stage::kFloat ? spec.model.pretrained : "";
  ir::Graph graph;
  if (stage == Stage::kFloat && !(spec.model.load_graph && !file.empty())) {
    models::ModelOptions o;
    o.arch = spec.model.arch;
    o.num_classes = spec.model.num_classes;
    o.input = {spec.model.channels(), spec.model.height(), spec.model.width()};
    o.seed = static_cast<uint64_t>(spec.train.seed);
    o.dropout = spec.model.dropout;
    o.zero_init_residual = spec.model.zero_init_residual;
    graph = models::build_model(o);
    if (!file.empty()) take_weights(graph, onnx::import_model(file), file);
  } else {
    if (file.empty())
      fail_usage("stage ", spec::stage_name(stage), " goes on from a model: name it with -m (",
                 stage == Stage::kQat ? "the output of octet calibrate" : "the model of stage float", ")");
    graph = load_network(file);
    passes::run_pipeline(graph, passes::training_passes());
  }
  ir::infer_shapes(graph);
  ir::verify(graph);
  ir::check_finite_constants(graph);
  tasks::require_classifier(graph, spec.model.num_classes);
  data::require_fit(tasks::image_input(graph), spec.model.channels(), spec.model.height(), spec.model.width());
  if (stage != Stage::kCalibration && tasks::images_at_a_time(graph) > 0)
    fail_usage(file, ": input '", graph.inputs()[0]->name, "' is ", ir::type_string(graph.inputs()[0]->type),
               ", and the network does not treat the images of another batch each by itself; export it with a free batch to "
               "train it");
  if (stage == Stage::kQat && spec.quant.enable_qat && !has_quantizers(graph))
    fail_usage(file, ": has no quantisers; run octet calibrate on it first and give its output to stage qat");
  if (stage != Stage::kQat && has_quantizers(graph))
    fail_usage(file, ": holds quantisers; stage ", spec::stage_name(stage), " trains a float model");
  return graph;
}

}  // namespace octet::cli
