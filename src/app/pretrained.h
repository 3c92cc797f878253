// Trained weights into networks of the zoo: as the start of a training (model.pretrained), or to be written as ONNX.
#pragma once
#include <string>

#include "ir/graph.h"
#include "weights/load_weights.h"

namespace octet::app {

// Loads the weights of the file into the network and says what became of them. UserError (exit 2) as
// weights::require_loaded has it.
void take_pretrained(ir::Graph& graph, const std::string& file, bool allow_modification);

// The same for a network that nobody trains from there: UserError (exit 2) unless the file holds all of it.
void take_all_weights(ir::Graph& graph, const std::string& file);

// For people: how many weights were loaded, and a table of those that were not, at most `rows` of them.
std::string pretrained_text(const weights::WeightReport& report, size_t rows = 40);

}  // namespace octet::app
