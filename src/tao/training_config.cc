#include "tao/blocks.h"
#include "tao/tree.h"

namespace octet::tao {
namespace {

Message learning_rate() {
  Message soft_start;
  soft_start.number("min_learning_rate").key("train.schedule.min_lr").means("Rate at the beginning and at the end.");
  soft_start.number("max_learning_rate").key("train.optimizer.lr").means("Rate in the middle.");
  soft_start.number("soft_start")
      .range(0, 1)
      .key("train.schedule.soft_start")
      .means("Progress at which the rate reaches its maximum.");
  soft_start.number("annealing")
      .range(0, 1)
      .key("train.schedule.annealing")
      .means("Progress at which the rate begins to fall.");
  Message early_stopping;
  early_stopping.number("min_learning_rate")
      .key("train.schedule.min_lr")
      .means("Rate at the beginning and at the end.");
  early_stopping.number("max_learning_rate").key("train.optimizer.lr").means("Rate in the middle.");
  early_stopping.integer("soft_start_epochs")
      .range(0, 100'000)
      .key("train.schedule.soft_start_epochs")
      .means("Epochs until the rate reaches its maximum.");
  early_stopping.integer("annealing_epochs")
      .range(0, 100'000)
      .key("train.schedule.annealing_epochs")
      .means("Epochs over which the rate falls.");
  early_stopping.integer("patience_steps")
      .range(1, 100'000)
      .key("train.schedule.patience_steps")
      .means("Epochs without a better validation until the rate falls, and then until the training ends.");
  Message m;
  m.message("soft_start_annealing_schedule", std::move(soft_start))
      .one_of("learning_rate")
      .sets("train.schedule.type", "soft_start_annealing")
      .means("The rate rises and falls on a logarithmic scale.");
  m.message("early_stopping_annealing_schedule", std::move(early_stopping))
      .one_of("learning_rate")
      .sets("train.schedule.type", "early_stopping_annealing")
      .means("The rate rises, stays until the validation no longer improves, and falls.");
  return m;
}

Message regularizer() {
  Message m;
  m.choice("type", {{"NO_REG", "none"}, {"L1", "l1"}, {"L2", "l2"}})
      .key(".type")
      .means("Sum of absolute values, of squares, or none.");
  m.number("weight").range(0, 1000).key(".weight").means("Factor on it.");
  return m;
}

Message optimizer() {
  Message adam;
  adam.number("epsilon").key("train.optimizer.eps").means("Added to the denominator.");
  adam.number("beta1").range(0, 1).otherwise("0.9").key("train.optimizer.betas[0]").means("Decay of the first moment.");
  adam.number("beta2")
      .range(0, 1)
      .otherwise("0.999")
      .key("train.optimizer.betas[1]")
      .means("Decay of the second moment.");
  Message m;
  m.message("adam", std::move(adam)).sets("train.optimizer.type", "adam").one_of("optimizer").means("Adam.");
  return m;
}

Message cost_scaling() {
  Message m;
  m.flag("enabled").key(".enabled").means("Scale the loss, so that small gradients survive FP16.");
  m.number("initial_exponent").key(".initial_exponent").means("The loss is multiplied by 2 to this power at first.");
  m.number("increment").range(0).key(".increment").means("Added to the exponent after a step with finite gradients.");
  m.number("decrement").range(0).key(".decrement").means("Taken from the exponent after a step without.");
  return m;
}

Message wandb_config() {
  Message m;
  m.flag("enabled").means("Send curves to Weights & Biases.");
  m.text("key").means("Key of the account.");
  m.text("project").means("Project.");
  m.text("entity").means("Team or user.");
  m.flag("reinit").means("Allow several runs in one process.");
  m.text("name").means("Name of the run.");
  m.text("tags", Count::kList).means("Tags of the run.");
  m.text("wandb_dir").means("Folder of its files.");
  m.text("notes").means("Remarks.");
  m.choice("mode", {{"ONLINE", ""}, {"OFFLINE", ""}, {"DISABLED", ""}}).means("When data are sent.");
  return m;
}

Message clearml_config() {
  Message m;
  m.text("project").means("Project.");
  m.text("task").means("Name of the run.");
  m.text("tags", Count::kList).means("Tags of the run.");
  m.flag("reuse_last_task_id").means("Overwrite the last run.");
  m.flag("continue_last_task").means("Go on with the last run.");
  m.flag("deferred_init").means("Connect in the background.");
  return m;
}

Message visualizer() {
  Message threshold;
  threshold.number("coverage_threshold").range(0, 1).means("Cells with less coverage are not drawn.");
  Message m;
  m.flag("enabled").key(".enabled").means("Draw images with boxes into TensorBoard.");
  m.integer("num_images").range(1, 1000).key(".num_images").means("Images that are drawn.");
  m.integer("scalar_logging_frequency")
      .range(0)
      .unused("train.visualizer.scalar_logging_frequency counts steps, TAO's points of an epoch")
      .means("Points of the curves in an epoch.");
  m.integer("infrequent_logging_frequency")
      .range(0)
      .unused("images are drawn at every validation")
      .means("Epochs between images and histograms.");
  m.message("target_class_config", std::move(threshold), Count::kMap)
      .unused("what is drawn are detections, with thresholds of their own")
      .means("By class.");
  m.message("wandb_config", wandb_config())
      .unused("nothing is sent anywhere; TensorBoard files are written")
      .means("Weights & Biases.");
  m.message("clearml_config", clearml_config())
      .unused("nothing is sent anywhere; TensorBoard files are written")
      .means("ClearML.");
  return m;
}

// A file with enable_qat describes the quantization-aware training, which is Octet's section finetune; what it says of
// no length and rate of its own, that section has from train.
Hook schedule_of_qat() {
  const auto copy = [](Tree& experiment, const char* from, const char* to) {
    if (const schema::Node* node = experiment.find(parse_path(from))) {
      const schema::Node value = *node;
      experiment.set(parse_path(to), value, value.location);
    }
  };
  return {.read = [copy](const schema::Node&, Tree& experiment, std::vector<UnusedField>&) {
    if (experiment.text(parse_path("quant.enable_qat")) != "true") return;
    copy(experiment, "train.epochs", "finetune.epochs");
    copy(experiment, "train.optimizer.lr", "finetune.optimizer.lr");
    copy(experiment, "train.schedule.min_lr", "finetune.schedule.min_lr");
  }};
}

}  // namespace

Message training_config() {
  Message m;
  m.integer("batch_size_per_gpu")
      .range(1, 65'536)
      .key("train.batch_size_per_gpu")
      .means("Images in a batch of each GPU.");
  m.integer("num_epochs").range(1, 100'000).key("train.epochs").means("Passes over the training images.");
  m.message("learning_rate", learning_rate()).means("Schedule of the learning rate.");
  m.message("regularizer", regularizer())
      .key("train.regularizer")
      .means("Keeps weights small, before pruning above all.");
  m.message("optimizer", optimizer()).means("Update of the weights.");
  m.message("cost_scaling", cost_scaling()).key("train.cost_scaling").means("Scaling of the loss for FP16.");
  m.integer("checkpoint_interval")
      .range(1, 100'000)
      .otherwise("10")
      .key("train.checkpoint_interval")
      .means("Epochs between checkpoints.");
  m.flag("enable_qat")
      .otherwise("false")
      .key("quant.enable_qat")
      .means("Train quantization-aware; learning rate and epochs are then those of section finetune.");
  m.message("visualizer", visualizer()).key("train.visualizer").means("Images and curves of the training.");
  m.hook(schedule_of_qat());
  return m;
}

}  // namespace octet::tao
