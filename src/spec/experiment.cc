#include "spec/experiment.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/nearest.h"
#include "schema/tree.h"
#include "spec/experiment_schema.h"

namespace octet::spec {
namespace {

using schema::Node;

// What no single key can check. `at` gives the place of a key, or of the nearest section around it that is in the file.
class CrossChecks {
 public:
  CrossChecks(const ExperimentSpec& spec, const Node& root) : spec_(spec), root_(root) {}

  void run() const {
    const data::TransformOptions& transform = spec_.data.transform;
    const size_t channels = static_cast<size_t>(spec_.model.channels());
    for (const auto& [key, values] : {std::pair{"data.mean", &transform.mean}, std::pair{"data.std", &transform.std}})
      if (values->size() != 1 && values->size() != channels)
        refuse(key, "has ", values->size(), " values, but model.input has ", channels, " channels; give 1 or ",
               channels);
    if (transform.scale[0] > transform.scale[1]) refuse("data.augment.scale", "must be [smallest, largest]");
    if (transform.ratio[0] > transform.ratio[1]) refuse("data.augment.ratio", "must be [narrowest, widest]");
    check_source(spec_.data.train, "data.train");
    check_source(spec_.data.val, "data.val");
    check_source(spec_.data.test, "data.test");
    check_source(spec_.data.calibration, "data.calibration");
    if (spec_.model.load_graph && spec_.model.pretrained.empty())
      refuse("model.load_graph", "needs model.pretrained, the ONNX file whose graph is meant");
    check_training(spec_.train, "train");
    check_training(spec_.finetune, "finetune");
    for (const quant::PlacementExclusion& exclusion : spec_.quant.placement.exclude)
      if (exclusion.name.empty() == exclusion.op.empty())
        refuse("quant.exclude", "takes items with either a name or an op, as in [\"head/*\", {op: Sigmoid}]");
  }

 private:
  void check_source(const std::optional<data::DatasetOptions>& source, const std::string& path) const {
    if (!source || source->labels.empty() || data::dataset_format(source->format).separate_labels) return;
    std::vector<std::string> takers;
    for (const data::DatasetFormat& format : data::dataset_formats())
      if (format.separate_labels) takers.push_back(format.name);
    refuse(path + ".labels", "belongs to the format ", schema::alternatives(takers),
           "; other formats hold their labels themselves");
  }

  void check_training(const train::TrainOptions& options, const std::string& path) const {
    const train::OptimizerOptions& optimizer = options.optimizer;
    if (optimizer.type == train::OptimizerType::kSgd && optimizer.nesterov && optimizer.momentum <= 0)
      refuse(path + ".optimizer.nesterov", "needs a momentum above 0");
    for (const double beta : optimizer.betas)
      if (beta >= 1) refuse(path + ".optimizer.betas", "must be less than 1");
    const train::ScheduleOptions& schedule = options.schedule;
    if (schedule.min_lr > optimizer.lr)
      refuse(path + ".schedule.min_lr", "is ", schema::number_text(schedule.min_lr), ", more than optimizer.lr, ",
             schema::number_text(optimizer.lr));
    if (!std::is_sorted(schedule.steps.begin(), schedule.steps.end()))
      refuse(path + ".schedule.steps", "must be in ascending order");
    if (schedule.type == train::ScheduleType::kSoftStart) {
      if (schedule.min_lr <= 0) refuse(path + ".schedule.min_lr", "must be more than 0 for the type soft_start");
      if (schedule.soft_start > schedule.annealing)
        refuse(path + ".schedule.soft_start", "must not be more than annealing");
    }
  }

  template <typename... Args>
  [[noreturn]] void refuse(const std::string& path, Args&&... args) const {
    fail_usage(at(path), ": '", path, "' ", std::forward<Args>(args)...);
  }

  std::string at(const std::string& path) const {
    const Node* node = &root_;
    for (size_t begin = 0; begin <= path.size();) {
      const size_t end = std::min(path.find('.', begin), path.size());
      const Node* next = node->find(std::string_view(path).substr(begin, end - begin));
      if (!next) break;
      node = next;
      begin = end + 1;
    }
    return node->location;
  }

  const ExperimentSpec& spec_;
  const Node& root_;
};

std::string hash_text(const std::string& text) {
  return hex64(hash64(text));
}

// Settings of speed, memory and book-keeping do not change what is computed.
void clear_incidentals(train::TrainOptions& options) {
  const train::TrainOptions defaults;
  options.threads = defaults.threads;
  options.checkpoint_interval = defaults.checkpoint_interval;
  options.keep_checkpoints = defaults.keep_checkpoints;
}

ExperimentSpec without_incidentals(const ExperimentSpec& spec) {
  ExperimentSpec out = spec;
  clear_incidentals(out.train);
  clear_incidentals(out.finetune);
  out.data.threads = 0;
  out.quant.calibration.batch_size = quant::CalibrationOptions().batch_size;
  out.evaluate = {};
  out.export_options = {};
  out.engine = {};
  return out;
}

}  // namespace

ExperimentSpec load_experiment(const std::string& path, const LoadOptions& options) {
  std::string text;
  try {
    text = read_file_or_pipe(path);
  } catch (const UserError& e) {
    fail_usage(e.what());  // a spec that is not there is a usage error
  }
  return parse_experiment(text, path, options);
}

ExperimentSpec parse_experiment(std::string_view text, const std::string& name, const LoadOptions& options) {
  Node root = schema::parse_yaml(text, name);
  for (const std::string& assignment : options.overrides) schema::apply_override(root, assignment);
  ExperimentSpec spec;
  Section section;
  describe(section, spec);
  schema::read_section(section, root, "", {.check_files = options.check_files});
  CrossChecks(spec, root).run();
  data::resolve_splits(spec.data);
  return spec;
}

std::string to_yaml(const ExperimentSpec& spec) {
  ExperimentSpec copy = spec;
  Section section;
  describe(section, copy);
  return schema::write_section(section);
}

std::string spec_hash(const ExperimentSpec& spec) {
  return hash_text(to_yaml(without_incidentals(spec)));
}

ExperimentSpec relevant_to(const ExperimentSpec& spec, Stage stage) {
  ExperimentSpec kept = without_incidentals(spec);
  // Ranges depend on the calibration images, and the quantised fine-tune on the ranges.
  if (stage == Stage::kFloat || stage == Stage::kControl) {
    kept.quant = {};
    kept.data.calibration.reset();
  }
  if (stage == Stage::kFloat || stage == Stage::kCalibration) kept.finetune = {};
  if (stage != Stage::kFloat) kept.train = {};
  return kept;
}

std::string spec_hash(const ExperimentSpec& spec, Stage stage) {
  return hash_text(stage_name(stage) + to_yaml(relevant_to(spec, stage)));
}

Stage parse_stage(const std::string& name) {
  std::vector<std::string> names;
  for (const EnumName<Stage>& entry : enum_names(Stage{})) {
    if (name == entry.name) return entry.value;
    names.push_back(entry.name);
  }
  fail_usage("unknown stage '", name, "'", did_you_mean(name, names), " (the stages are ", schema::join(names, ", "), ")");
}

const char* stage_name(Stage stage) {
  return schema::enum_name(stage);
}

}  // namespace octet::spec
