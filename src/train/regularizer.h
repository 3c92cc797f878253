// The penalty on the weights as a part of the loss.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "train/options/regularizer.h"

namespace octet::train {

class Executor;

class Regularizer {
 public:
  // Weights and biases of the executor's convolutions and matrix products; not those of normalizations, nor slopes.
  Regularizer(const RegularizerOptions& options, const Executor& executor);
  bool enabled() const { return options_.type != RegularizerType::kNone && options_.weight > 0; }
  // Of the parameters as they are, with autograd.
  at::Tensor operator()() const;

 private:
  RegularizerOptions options_;
  std::vector<at::Tensor> parameters_;
  at::Tensor none_;  // the sum where there are none, on their device
};

}  // namespace octet::train
