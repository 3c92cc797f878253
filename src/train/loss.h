// What a training descends. Tasks bring their own; wrappers (distillation) put one around another.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "data/loader.h"

namespace octet::train {

// Scalars with autograd, by the names under which they are shown.
using LossParts = std::vector<std::pair<std::string, at::Tensor>>;

class Loss {
 public:
  virtual ~Loss() = default;
  // Of one batch, from the outputs of the executed graph in its order. The step descends the sum of the parts.
  virtual LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) = 0;
};

}  // namespace octet::train
