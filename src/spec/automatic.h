// Keys of an experiment that others decide: model.input by model.input_shape, and those that say `auto`:
// model.num_classes, model.input, data.mean and data.std.
#pragma once
#include <string>

#include "spec/experiment.h"

namespace octet::spec {

// model.input as model.input_shape says it, where that is of one input of images: its sizes where nobody says
// model.input. UserError (exit 2), starting with `name`, where both are said and differ.
void take_input_shape(ExperimentSpec& spec, const std::string& name);

// Finds what they stand for, from the training images and the network, and puts it in their place. Reads the class
// folders, or of other formats the labels, where num_classes is open. UserError (exit 2), starting with `name`, where
// there is nothing to find it from.
void resolve_automatic(ExperimentSpec& spec, const std::string& name);

}  // namespace octet::spec
