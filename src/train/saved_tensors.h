// What objects of a training keep in checkpoints.
#pragma once
#include <string>

#include "checkpoint/safetensors.h"

namespace at {
class Tensor;
}

namespace octet::train {

// UserError where the checkpoint holds none of this name.
const ir::Tensor& saved_entry(const checkpoint::NamedTensors& state, const std::string& key);
// Into `target`; UserError, too, for another shape.
void restore(at::Tensor& target, const checkpoint::NamedTensors& state, const std::string& key);

}  // namespace octet::train
