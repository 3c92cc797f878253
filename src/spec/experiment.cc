#include "spec/experiment.h"

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/nearest.h"
#include "schema/tree.h"
#include "spec/automatic.h"
#include "spec/experiment_schema.h"
#include "spec/tao.h"

namespace octet::spec {
namespace {

std::string hash_text(const std::string& text) {
  return hex64(hash64(text));
}

// Settings of speed, memory and book-keeping do not change what is computed.
void clear_incidentals(train::TrainOptions& options) {
  const train::TrainOptions defaults;
  options.threads = defaults.threads;
  options.checkpoint_interval = defaults.checkpoint_interval;
  options.keep_checkpoints = defaults.keep_checkpoints;
  options.visualizer = defaults.visualizer;
}

ExperimentSpec without_incidentals(const ExperimentSpec& spec) {
  ExperimentSpec out = spec;
  out.task.forget_incidentals();
  clear_incidentals(out.train);
  clear_incidentals(out.finetune);
  out.data.threads = 0;
  out.data.cache_mb = data::DataOptions().cache_mb;
  out.quant.calibration.batch_size = quant::CalibrationOptions().batch_size;
  out.evaluate = {};
  out.infer = {};
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
  SourceTree source = read_source(text, name, options.default_task);
  for (const tao::UnusedField& field : source.unused)
    if (!options.quiet) log_info(field.location, ": '", field.field, "' is not used: ", field.reason);
  schema::Node& root = source.tree;
  for (const std::string& assignment : options.overrides) schema::apply_override(root, assignment);
  ExperimentSpec spec;
  Section section;
  describe(section, spec);
  schema::read_section(section, root, "", {.check_files = options.check_files});
  const schema::Node* model = root.kind == schema::Node::Kind::kMap ? root.find("model") : nullptr;
  spec.model.input_unsaid = model == nullptr || model->kind != schema::Node::Kind::kMap || !model->find("input");
  take_input_shape(spec, name);
  data::resolve_splits(spec.data);
  if (options.check_files) resolve_automatic(spec, name);
  return spec;
}

quant::QuantOptions ExperimentSpec::quantization() const {
  quant::QuantOptions out = quant;
  // A DLA wants a range for the heads, too.
  const bool wants_all = quant::combine(quant.placement.rules).dla;
  const bool as_float =
      quant.heads == quant::Heads::kFloat || (quant.heads == quant::Heads::kAuto && task->float_heads() && !wants_all);
  out.placement.quantize_last_layer = !as_float;
  return out;
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
  // Ranges depend on the calibration images, and the quantized fine-tune on the ranges.
  if (stage == Stage::kFloat || stage == Stage::kControl) {
    kept.quant = {};
    kept.data.calibration.clear();
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
  fail_usage("unknown stage '", name, "'", did_you_mean(name, names), " (the stages are ", schema::join(names, ", "),
             ")");
}

const char* stage_name(Stage stage) {
  return schema::enum_name(stage);
}

}  // namespace octet::spec
