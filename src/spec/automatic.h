// The keys of an experiment that say `auto`: model.num_classes, model.input, data.mean and data.std.
#pragma once
#include <string>

#include "spec/experiment.h"

namespace octet::spec {

// Finds what they stand for, from the training images and the network, and puts it in their place. Reads the class
// folders, or of other formats the labels, where num_classes is open. UserError (exit 2), starting with `name`, where
// there is nothing to find it from.
void resolve_automatic(ExperimentSpec& spec, const std::string& name);

}  // namespace octet::spec
