// What model files carry of their experiment, so that they can be run without it: how images become the input, the
// task, and how its outputs are read. Entries of the metadata (engine/model_info.h), which every command hands on.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/model_file.h"
#include "spec/experiment.h"

namespace octet::app {

// All entries but the names of the classes, as `spec` says them, for a network with this signature.
Metadata description_of(const spec::ExperimentSpec& spec, const tasks::Signature& network);

// Puts those into `metadata`, in place of what it has; `only`: those with these keys.
void keep_description(Metadata& metadata, const spec::ExperimentSpec& spec, const tasks::Signature& network);
void keep_description(Metadata& metadata, const spec::ExperimentSpec& spec, const tasks::Signature& network,
                      const std::set<std::string>& only);

// Where the model does not say its task and a task knows its outputs (tasks::Task::recognize), its entries are added.
void recognize_task(ModelFacts& model);

// The experiment that says what the model carries, as YAML; keys for which it carries nothing are left out.
// `with_input` false: leaves out how images become the input. UserError naming the file for an entry that is malformed.
std::string experiment_text(const ModelFacts& model, bool with_input = true);
spec::ExperimentSpec experiment_of(const ModelFacts& model);

// Where `spec` says something else than the model carries: "data.mean is [0.5], in the model [0.485,0.456,0.406]".
// Entries that are malformed contradict nothing.
std::vector<std::string> contradictions(const ModelFacts& model, const spec::ExperimentSpec& spec);

}  // namespace octet::app
