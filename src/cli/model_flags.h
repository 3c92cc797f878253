// The experiment of a command that runs a model: what -e says, else what the model carries, and flags above both.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "app/model_file.h"
#include "cli/flags.h"

namespace octet::cli {

// What a user says of a model whose file does not, or says something else:
//   --mean X,... --std X,... --resize N --color-order rgb|bgr --interpolation WORD --preset WORD --classes FILE|a,b,...
struct ModelFlags {
  std::vector<double> mean, std;
  int64_t resize = -1;  // not given
  std::string color_order, interpolation, preset;
  std::string classes;

  bool any() const;
  // As keys of an experiment: "data.mean=[0.5]".
  std::vector<std::string> overrides() const;
};
void add_model_flags(CLI::App& app, ModelFlags& flags);

// -e where the model's file may say the same: help, and not required.
void add_optional_spec_flags(CLI::App& app, SpecFlags& flags);

// --images FOLDER: labeled images, a folder for each class, in place of the experiment's test images.
void add_labeled_images_flag(CLI::App& app, std::string& folder);
// `flags` with these images; as they are where `folder` is empty.
SpecFlags with_images(SpecFlags flags, const std::string& folder);

// One sentence where `spec`, as these flags gave it, says something else than the model carries.
void warn_of_contradictions(const app::ModelFacts& model, const spec::ExperimentSpec& spec, const SpecFlags& flags);
// Warns of what contradicts `model`, which gets the names of --classes. UserError (exit 2) for what cannot be read.
spec::ExperimentSpec experiment_for(const SpecFlags& spec, const ModelFlags& flags, app::ModelFacts& model);
// The same for a command that feeds images to the model: UserError (exit 2), with the flags that say it, where nobody
// says how they are normalized or what the outputs are.
spec::ExperimentSpec experiment_to_run(const SpecFlags& spec, const ModelFlags& flags, app::ModelFacts& model);

// The same for a command to which the outputs are numbers, whatever they mean.
spec::ExperimentSpec experiment_to_feed(const SpecFlags& spec, const ModelFlags& flags, app::ModelFacts& model);

// What spec and flags say of the network, put into its metadata, to be carried from there on. Without them nothing
// changes, but that what other programs wrote is also said as Octet does.
void describe_network(ir::Graph& network, const std::string& path, const SpecFlags& spec, const ModelFlags& flags);
// The same where the experiment is at hand. `fed`: images went through the network as it says.
void describe_network(app::Metadata& metadata, const app::ModelFacts& model, const spec::ExperimentSpec& experiment,
                      const SpecFlags& spec, const ModelFlags& flags, bool fed);

}  // namespace octet::cli
