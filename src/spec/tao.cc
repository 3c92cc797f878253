#include "spec/tao.h"

#include <algorithm>

#include "base/error.h"
#include "tao/reference.h"
#include "tao/text_format.h"
#include "tao/tree.h"
#include "tao/write.h"

namespace octet::spec {
namespace {

using schema::Node;

struct Specification {
  std::string task;
  const tao::Message* message;
  bool inference = false;  // the file of the inference alone
};

std::vector<Specification> specifications() {
  std::vector<Specification> out;
  for (const tasks::TaskInfo& info : tasks::all_tasks()) {
    const auto task = info.make();  // the descriptions outlive it
    if (const tao::Message* message = task->tao_specification()) out.push_back({info.name, message});
    if (const tao::Message* message = task->tao_inference_specification()) out.push_back({info.name, message, true});
  }
  return out;
}

std::vector<std::string> top_fields() {
  std::vector<std::string> names;
  for (const Specification& each : specifications())
    for (std::string& name : each.message->field_names()) names.push_back(std::move(name));
  return names;
}

// Of the task that the command line names, or of all: the one that knows the most blocks of the file.
Specification specification_for(const Node& text, const std::string& task) {
  std::vector<Specification> all = specifications();
  OCTET_CHECK(!all.empty());
  if (!task.empty()) std::erase_if(all, [&](const Specification& each) { return each.task != task; });
  if (all.empty())
    fail_usage(text.location, ": is a specification of NVIDIA TAO, and none is read for the task ", task,
               "; write the experiment in YAML (docs/spec.md)");
  const auto known = [&](const Specification& each) {
    return std::count_if(text.entries.begin(), text.entries.end(),
                         [&](const schema::Entry& entry) { return each.message->find(entry.key) != nullptr; });
  };
  return *std::max_element(all.begin(), all.end(), [&](const auto& a, const auto& b) { return known(a) < known(b); });
}

constexpr const char* kTaoIntroduction =
    R"(# Specifications of NVIDIA TAO

<!-- Generated from what src/tao and the tasks say of the fields by `octet spec --tao`; a test compares the two. -->

Every command that takes an experiment (`-e`) takes TAO's specification of the network, too, as it is: protobuf text
instead of YAML, told apart by what is in the file. `octet convert spec` turns one into the other.

- A field that Octet has no use for is named once, with the reason. A misspelt field, a value of another type or out of
  range, a field that stands there twice, and two fields that exclude each other are errors with line and column.
- What a file leaves open has Octet's default ([spec.md](spec.md)), unless the table says what it has.
- `--set KEY=VALUE` changes keys of Octet, as in YAML.
- With `enable_qat: true` the file is that of the quantization-aware training: its epochs and rates are those of
  `finetune`.
- TAO's file for `inference` is that of `octet infer -e FILE -m MODEL -i IMAGES -r RESULTS`.
)";

}  // namespace

SourceTree read_source(std::string_view text, const std::string& name, const std::string& task) {
  SourceTree source;
  source.is_tao = tao::looks_like_text_format(text, top_fields());
  if (!source.is_tao) {
    source.tree = schema::parse_yaml(text, name);
    if (!task.empty() && !source.tree.find("task")) schema::apply_override(source.tree, "task=" + task);
    return source;
  }
  const Node message = tao::parse_text_format(text, name);
  const Specification specification = specification_for(message, task);
  tao::Experiment experiment = tao::read_specification(*specification.message, message);
  source.tree = std::move(experiment.tree);
  source.unused = std::move(experiment.unused);
  tao::Tree tree(std::move(source.tree));
  tree.set({"task"}, tao::scalar(specification.task, false, message.location), message.location);
  source.tree = std::move(tree.root());
  return source;
}

namespace {

// The training of `stage` as the only one.
ExperimentSpec training_of(const ExperimentSpec& spec, Stage stage) {
  ExperimentSpec one = spec;
  one.train = one.finetune = spec.schedule_for(stage);
  one.quant.enable_qat = stage == Stage::kQat;
  return one;
}

}  // namespace

std::string to_tao(const ExperimentSpec& spec, Stage stage) {
  const tao::Message* message = spec.task->tao_specification();
  if (!message)
    fail_usage("TAO has no specification in protobuf text that Octet knows for the task ", spec.task.name());
  const tao::Tree tree(schema::parse_yaml(to_yaml(training_of(spec, stage)), "experiment"));
  return tao::write_specification(*message, tree, "data.target_classes");
}

std::vector<KeyDifference> lost_in_tao(const ExperimentSpec& spec, Stage stage, const std::string& specification) {
  ExperimentSpec before = training_of(spec, stage);
  ExperimentSpec after = parse_experiment(specification, "specification", {.check_files = false, .quiet = true});
  before.finetune = after.finetune = {};
  // TAO's schedules do not use it, and a fine-tune starts without it.
  if (before.train.schedule.type == after.train.schedule.type &&
      (before.train.schedule.type == train::ScheduleType::kSoftStartAnnealing ||
       before.train.schedule.type == train::ScheduleType::kEarlyStoppingAnnealing))
    before.train.schedule.warmup = after.train.schedule.warmup;
  std::vector<KeyDifference> all = differences(before, after), lost;
  // Sections of classes only spell out what the section around them says.
  for (KeyDifference& each : all)
    if (each.before != "absent") lost.push_back(std::move(each));
  return lost;
}

std::string tao_reference_markdown() {
  std::string out = kTaoIntroduction;
  for (const Specification& each : specifications())
    out += std::string(out.ends_with("\n\n") ? "" : "\n") + "## `" + each.task +
           (each.inference ? "`, inference" : "`") + "\n\n" + tao::reference_markdown(*each.message);
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace octet::spec
