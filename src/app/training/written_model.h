// Whether a quantization-aware training writes the network that it trained.
#pragma once
#include <string>

#include "ir/graph.h"
#include "tasks/task.h"
#include "train/trainer.h"

namespace octet::app {

// The validation's metric of `trained` as it is deployed (passes::deployment_passes), computed as octet evaluate does:
// in float32, quantized tensors as integers where `device` is the CPU. All ranks call it together.
double measure_written(const ir::Graph& trained, const tasks::Task& task, const train::Validation& validation,
                       const std::string& device);

// Tells both, as a warning where the written model is more than a point (metrics are percentages) behind what was
// measured while it trained. The difference is what lies between the two: the precision of the training, batch norms
// folded for good, and biases on the accumulator's grid.
void tell_of_written(const train::Validation& validation, double trained, double written);

}  // namespace octet::app
