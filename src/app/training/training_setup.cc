#include "app/training/training_setup.h"

#include "app/experiment_data.h"
#include "app/network_file.h"
#include "app/pretrained.h"
#include "app/training/calibration.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "models/zoo.h"
#include "passes/pipelines.h"
#include "passes/train_scales.h"
#include "tasks/image_graph.h"
#include "weights/weight_file.h"

namespace octet::app {

using spec::Stage;

train::TrainerOptions trainer_options(const spec::ExperimentSpec& spec, Stage stage,
                                      const std::filesystem::path& results) {
  train::TrainerOptions o{spec.schedule_for(stage)};
  o.checkpoints = results / "checkpoints";
  o.mixed = train::resolve(o.precision, o.amp, o.device);
  o.executor = train::executor_options(o, o.mixed, spec.quant.averaging);
  o.stop_requested = stop_requested;
  return o;
}

data::Share share_of(const train::Communicator& communicator) {
  return {communicator.rank(), communicator.size()};
}

ir::Graph starting_network(const spec::ExperimentSpec& spec, Stage stage, const std::string& model) {
  const std::string file = starting_file(spec, stage, model);
  ir::Graph graph;
  if (stage == Stage::kFloat && !(spec.model.load_graph && !file.empty())) {
    models::ModelOptions o = spec.model;
    o.seed = static_cast<uint64_t>(spec.train.seed);
    for (const std::string& sentence : models::unused_options(o)) log_warning(sentence);
    graph = spec.task->build(o);
    if (!file.empty()) take_pretrained(graph, file, spec.model.allow_loaded_model_modification);
  } else {
    if (file.empty())
      fail_usage("stage ", spec::stage_name(stage), " goes on from a model: name it with -m, or with model.pretrained ",
                 "and model.load_graph (the model of stage float",
                 stage == Stage::kQat ? ", or the output of octet calibrate)" : ")");
    if (weights::weight_format(file) != weights::WeightFormat::kOnnx)
      fail_usage(file, ": holds weights and no graph; name an ONNX file",
                 model.empty() ? ", or leave model.load_graph out" : "");
    graph = load_network(file, ir::parse_input_shapes(spec.model.input_shape));
    passes::run_pipeline(graph, passes::training_passes());
  }
  if (file.empty() && !spec.model.freeze_blocks.empty())
    fail_usage("model.freeze_blocks would keep random weights; name trained ones: model.pretrained");
  if (stage == Stage::kQat) passes::train_scales(graph, spec.quant.training);
  check_start(graph, spec, stage, file);
  return graph;
}

quant::CalibrationSet calibrate_network(ir::Graph& graph, const spec::ExperimentSpec& spec,
                                        train::Communicator& communicator) {
  const DataStream images = open_calibration_data(spec, tasks::images_at_a_time(graph), share_of(communicator));
  quant::CalibrationSet observed = calibrate(graph, *images.loader, spec.quantization(), {}, communicator);
  mark_calibrated(graph, spec);
  return observed;
}

}  // namespace octet::app
