// What a training descends. Tasks bring their own; wrappers (distillation) put one around another.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"
#include "data/loader.h"
#include "train/communicator.h"

namespace octet::train {

// Scalars with autograd, by the names under which they are shown.
using LossParts = std::vector<std::pair<std::string, at::Tensor>>;

class Loss {
 public:
  virtual ~Loss() = default;
  // Of one batch, from the outputs of the executed graph in its order. The step descends the sum of the parts.
  virtual LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) = 0;
  // Whether it has no parts of its own, so that there is nothing to learn but from a teacher (distillation.h).
  virtual bool needs_teacher() const { return false; }

  // After the last batch of an epoch, by all ranks at a time: a loss that learns over an epoch does it here, and agrees
  // with those of the other ranks.
  virtual void end_epoch(Communicator&) {}
  // What later losses depend on beside their batch, at any time between two batches; entries begin with "loss/".
  // load(): UserError where one is missing or has another shape.
  virtual void save(checkpoint::NamedTensors&) const {}
  virtual void load(const checkpoint::NamedTensors&) {}
};

}  // namespace octet::train
