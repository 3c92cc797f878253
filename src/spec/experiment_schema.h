// The experiment file as a whole, and the keys that belong to no other layer; see schema/schema.h.
#pragma once
#include "schema/schema.h"
#include "spec/experiment.h"

namespace octet::spec {

using schema::EnumName;
using schema::Section;

std::span<const EnumName<Stage>> enum_names(Stage);

// Found by argument-dependent lookup from Section, hence declared for every struct.
void describe(Section& s, EvaluateSpec& options);
void describe(Section& s, InferSpec& options);
void describe(Section& s, ExportSpec& options);
void describe(Section& s, EngineSpec& options);
// The whole file. Reading it prepares `finetune` from `train`.
void describe(Section& s, ExperimentSpec& spec);

}  // namespace octet::spec
