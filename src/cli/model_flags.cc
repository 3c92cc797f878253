#include "cli/model_flags.h"

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "app/model_description.h"
#include "app/network_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "engine/foreign_metadata.h"
#include "engine/model_info.h"
#include "tasks/signature.h"

namespace octet::cli {
namespace {

namespace key = engine::key;

std::string list_text(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(schema::number_text(value));
  return "[" + schema::join(texts, ",") + "]";
}

// The entries of metadata that keys of an experiment decide.
const std::set<std::string>& entries_of(const std::string& assignment) {
  static const std::vector<std::pair<std::string, std::set<std::string>>> table = {
      {"data.preset", {key::kMean, key::kStd, key::kColorOrder, key::kResize}},
      {"data.mean", {key::kMean}},
      {"data.std", {key::kStd}},
      {"data.color_order", {key::kColorOrder}},
      {"data.resize", {key::kResize}},
      {"data.interpolation", {key::kResize}},
      {"data.central_fraction", {key::kResize}},
      {"data.preprocessing", {key::kResize}},
      {"data.exif_orientation", {key::kExifOrientation}},
      {"task", {key::kTask, key::kDecoder}},
      {"detectnet_v2", {key::kDecoder}},
      {"detector", {key::kDecoder}}};
  static const std::set<std::string> none;
  for (const auto& [name, entries] : table)
    if (assignment.starts_with(name) && assignment.size() > name.size() &&
        (assignment[name.size()] == '=' || assignment[name.size()] == '.'))
      return entries;
  return none;
}

// What the user says beside the experiment file, as keys.
std::vector<std::string> all_overrides(const SpecFlags& spec, const ModelFlags& flags) {
  std::vector<std::string> out = flags.overrides();
  out.insert(out.end(), spec.overrides.begin(), spec.overrides.end());
  if (spec.exif_orientation) out.push_back("data.exif_orientation=true");
  if (!spec.task.empty()) out.push_back("task=" + spec.task);
  return out;
}

std::set<std::string> said(const SpecFlags& spec, const ModelFlags& flags) {
  std::set<std::string> out;
  if (!spec.path.empty())
    out = {key::kTask,   key::kMean, key::kStd, key::kColorOrder, key::kLayout, key::kResize, key::kExifOrientation,
           key::kDecoder};
  for (const std::string& assignment : all_overrides(spec, flags)) {
    const std::set<std::string>& entries = entries_of(assignment);
    out.insert(entries.begin(), entries.end());
  }
  return out;
}

std::set<std::string> carried(const app::Metadata& metadata) {
  std::set<std::string> out;
  for (const auto& [name, value] : engine::standard_metadata(metadata)) out.insert(name);
  out.erase(key::kClasses);
  return out;
}

// --classes: a file with a name a line or with a list as JSON and Python write it, or names with commas between them.
std::vector<std::string> read_classes(const std::string& given) {
  std::error_code ignored;
  std::vector<std::string> names;
  if (!std::filesystem::exists(given, ignored)) {
    if (given.find(',') == std::string::npos)
      fail_usage("--classes ", given, ": there is no such file, and it is no list of names (cat,dog)");
    std::istringstream pieces(given);
    for (std::string piece; std::getline(pieces, piece, ',');) names.push_back(piece);
    return names;
  }
  const std::string text = read_file(given);
  if (const size_t start = text.find_first_not_of(" \t\r\n");
      start != std::string::npos && (text[start] == '[' || text[start] == '{')) {
    const auto list = engine::parse_name_list(text);
    if (!list)
      fail_usage("--classes ", given, R"(: is neither a list of names (["cat", "dog"]) nor a map ({"0": "cat"}))");
    names = *list;
  } else {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      names.push_back(line);
    }
    while (!names.empty() && names.back().empty()) names.pop_back();
  }
  if (names.empty()) fail_usage("--classes ", given, ": holds no names");
  return names;
}

void take_classes(const ModelFlags& flags, app::ModelFacts& model) {
  if (flags.classes.empty()) return;
  const std::vector<std::string> names = read_classes(flags.classes);
  const std::vector<std::string> own = app::class_names_of(model.metadata, model.path);
  if (!own.empty() && own != names)
    log_warning("--classes names the classes otherwise than ", model.path, " does; --classes is taken");
  app::keep_class_names(model.metadata, names);
}

bool looks_like_classifier(const tasks::Signature& network) {
  return network.outputs.size() == 1 && network.outputs[0].type.shape && network.outputs[0].type.shape->size() == 2;
}

std::set<std::string> known_entries(const SpecFlags& spec, const ModelFlags& flags, const app::ModelFacts& model) {
  std::set<std::string> known = said(spec, flags);
  known.merge(carried(model.metadata));
  return known;
}

// What nobody says of "mean" and "std".
std::vector<std::string> unknown_normalization(const std::set<std::string>& known) {
  std::vector<std::string> missing;
  for (const auto& [name, what] : {std::pair(key::kMean, "mean"), std::pair(key::kStd, "std")})
    if (known.count(name) == 0) missing.push_back(what);
  return missing;
}

void require_known(const SpecFlags& spec, const ModelFlags& flags, const app::ModelFacts& model, bool outputs) {
  const std::set<std::string> known = known_entries(spec, flags, model);
  const std::vector<std::string> missing = unknown_normalization(known);
  if (!missing.empty())
    fail_usage(
        model.path, ": does not say the ", schema::join(missing, " and "), " of its input; give --",
        schema::join(missing, " and --"),
        " (of pixels in 0 .. 1; 0 and 1 where it takes these as they are), --preset, or the experiment (-e SPEC)");
  if (outputs && known.count(key::kTask) == 0 && !looks_like_classifier(model.signature))
    fail_usage(model.path,
               ": does not say what its outputs mean, and they are not those of a classifier; give an experiment with "
               "the task and how it reads them (-e SPEC)");
  if (known.count(key::kResize) == 0)
    log_warning(model.path,
                ": does not say how images get the size of its input; they are stretched to it (--resize N: shorter "
                "side to N pixels, then the middle)");
}

spec::ExperimentSpec experiment(const SpecFlags& flags, const ModelFlags& model_flags, app::ModelFacts& model,
                                bool outputs) {
  if (flags.path.empty()) {
    tasks::image_input(model.signature);  // a network that takes no images is told so first
    if (outputs && said(flags, model_flags).count(key::kTask) == 0) app::recognize_task(model);
    require_known(flags, model_flags, model, outputs);
  }
  spec::ExperimentSpec spec = experiment_for(flags, model_flags, model);
  app::require_sizes(model.signature, spec.model, model.path);
  return spec;
}

// Whether the command line says model.input.
bool says_input(const SpecFlags& flags) {
  return !flags.input_shape.empty() ||
         std::any_of(flags.overrides.begin(), flags.overrides.end(), [](const std::string& each) {
           return each.starts_with("model.input=") || each.starts_with("model.input[") || each.starts_with("model=");
         });
}

// -1: the network leaves it open, or is none of the task, as who runs it will say.
int64_t classes_of(const tasks::Task& task, const tasks::Signature& network) {
  try {
    task.check(network, 0);
    return task.classes(network);
  } catch (const UserError&) {
    return -1;
  }
}

}  // namespace

bool ModelFlags::any() const {
  return !overrides().empty() || !classes.empty();
}

std::vector<std::string> ModelFlags::overrides() const {
  std::vector<std::string> out;
  if (!preset.empty()) out.push_back("data.preset=" + preset);
  if (!mean.empty()) out.push_back("data.mean=" + list_text(mean));
  if (!std.empty()) out.push_back("data.std=" + list_text(std));
  if (resize >= 0) out.push_back(str("data.resize=", resize));
  if (!color_order.empty()) out.push_back("data.color_order=" + color_order);
  if (!interpolation.empty()) out.push_back("data.interpolation=" + interpolation);
  return out;
}

void add_model_flags(CLI::App& app, ModelFlags& flags) {
  const auto group = [](CLI::Option* option) { option->group("What the model's file does not say, or otherwise"); };
  group(add_numbers_flag(app, "--mean", flags.mean, -1000, 1000, "Subtracted from pixels in 0 .. 1, per channel"));
  group(add_numbers_flag(app, "--std", flags.std, 1e-6, 1000, "Pixels are divided by it, per channel"));
  group(add_number_flag(app, "--resize", flags.resize, 0, 16'384,
                        "Shorter side of images before the input is cut from the middle; 0: stretched to the input"));
  group(limit_to<data::ChannelOrder>(
      app.add_option("--color-order,--color_order", flags.color_order, "Order of the channels (default: rgb)")));
  group(limit_to<data::Interpolation>(
      app.add_option("--interpolation", flags.interpolation, "How images are resized (default: antialias)")));
  group(limit_to<data::InputPreset>(
      app.add_option("--preset", flags.preset, "All of these as a library does it (docs/data.md)")));
  group(app.add_option("--classes", flags.classes,
                       "Names of the classes: a file with one a line or a JSON list, or a,b,c")
            ->type_name("NAMES"));
}

void add_optional_spec_flags(CLI::App& app, SpecFlags& flags) {
  app.add_option("-e,--experiment_spec,--experiment_spec_file", flags.path,
                 "Experiment file, which wins over what the model carries (default: what the model carries)")
      ->type_name("SPEC");
  app.add_option("--set", flags.overrides, "Change a key of the experiment (repeatable)")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
}

void add_labeled_images_flag(CLI::App& app, std::string& folder) {
  app.add_option("--images", folder,
                 "Labeled images, a folder for each class, instead of the spec's (another format: --set data.test...)")
      ->type_name("FOLDER");
}

SpecFlags with_images(SpecFlags flags, const std::string& folder) {
  if (folder.empty()) return flags;
  std::string quoted;
  for (const char c : folder) quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  flags.overrides.push_back("data.test={format: image_folder, path: \"" + quoted + "\"}");
  return flags;
}

void warn_of_contradictions(const app::ModelFacts& model, const spec::ExperimentSpec& spec, const SpecFlags& flags) {
  const std::vector<std::string> others = app::contradictions(model, spec);
  if (others.empty()) return;
  const std::string who = flags.path.empty() ? "the command line" : flags.path;
  log_warning(who, " says something else than ", model.path, " carries: ", schema::join(others, "; "), "; what ", who,
              " says is taken");
}

spec::ExperimentSpec experiment_for(const SpecFlags& flags, const ModelFlags& model_flags, app::ModelFacts& model) {
  if (const std::string complaint = data::impossible_mean(model_flags.mean); !complaint.empty())
    fail_usage("--mean ", complaint);
  take_classes(model_flags, model);
  SpecFlags all = flags;
  const std::vector<std::string> overrides = model_flags.overrides();
  all.overrides.insert(all.overrides.begin(), overrides.begin(), overrides.end());
  const bool preset = std::any_of(all.overrides.begin(), all.overrides.end(),
                                  [](const std::string& each) { return each.starts_with("data.preset="); });
  std::string carried;
  if (flags.path.empty()) carried = app::experiment_text(model, /*with_input=*/!preset);
  spec::ExperimentSpec spec = all.load(carried, model.path + " (metadata)");
  const int64_t classes = classes_of(*spec.task, model.signature);
  if (classes > 0 && flags.path.empty()) spec.model.num_classes = classes;
  if (flags.path.empty() && !says_input(all)) spec.model.input_unsaid = true;  // what is carried may be half an input
  if (const auto names = std::ssize(app::class_names_of(model.metadata, model.path));
      !model_flags.classes.empty() && classes > 0 && names > 0 && names != classes)
    fail_usage("--classes names ", names, " classes, and ", model.path, " has ", classes, " scores");
  warn_of_contradictions(model, spec, flags);
  return spec;
}

spec::ExperimentSpec experiment_to_run(const SpecFlags& flags, const ModelFlags& model_flags, app::ModelFacts& model) {
  return experiment(flags, model_flags, model, /*outputs=*/true);
}

spec::ExperimentSpec experiment_to_feed(const SpecFlags& flags, const ModelFlags& model_flags, app::ModelFacts& model) {
  return experiment(flags, model_flags, model, /*outputs=*/false);
}

void describe_network(app::Metadata& metadata, const app::ModelFacts& model, const spec::ExperimentSpec& experiment,
                      const SpecFlags& flags, const ModelFlags& model_flags, bool fed) {
  std::set<std::string> known = known_entries(flags, model_flags, model);
  if (const std::vector<std::string> missing = unknown_normalization(known); fed && !missing.empty())
    log_warning(model.path, ": does not say the ", schema::join(missing, " and "),
                " of its input, so images went through it as pixels in 0 .. 1; give --",
                schema::join(missing, " and --"), " if it was trained otherwise");
  if (fed) known.insert({key::kMean, key::kStd, key::kColorOrder, key::kLayout, key::kResize, key::kExifOrientation});
  app::keep_description(metadata, experiment, model.signature, known);
  if (const std::vector<std::string> names = app::class_names_of(model.metadata, model.path); !names.empty())
    app::keep_class_names(metadata, names);
}

void describe_network(ir::Graph& network, const std::string& path, const SpecFlags& flags,
                      const ModelFlags& model_flags) {
  app::ModelFacts model{.path = path, .metadata = network.metadata, .signature = tasks::signature_of(network)};
  const bool silent = flags.path.empty() && !model_flags.any() && all_overrides(flags, model_flags).empty();
  if (silent && engine::translated_metadata(model.metadata).empty()) return;
  const spec::ExperimentSpec experiment = experiment_for(flags, model_flags, model);
  describe_network(network.metadata, model, experiment, flags, model_flags, /*fed=*/false);
}

}  // namespace octet::cli
