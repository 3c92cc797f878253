// The penalty on the weights as a part of the loss.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "train/fake_quant.h"
#include "train/options/regularizer.h"

namespace octet::train {

class Executor;

class Regularizer {
 public:
  // Weights and biases of the executor's convolutions and matrix products; not those of normalizations, nor slopes. Of
  // types range and dampening: weights alone, and quantized ones alone.
  Regularizer(const RegularizerOptions& options, const Executor& executor);
  bool enabled() const { return options_.type != RegularizerType::kNone && options_.weight > 0; }
  // Of the parameters as they are, with autograd.
  at::Tensor operator()() const;

 private:
  // Where a weight lies between its codes.
  struct Grid {
    at::Tensor scale;
    FakeQuantOptions options;
  };
  struct Parameter {
    at::Tensor value;
    int64_t axis;              // of its output channels; -1: it has none
    std::optional<Grid> grid;  // of one that is quantized
  };

  at::Tensor penalty(const Parameter& parameter) const;

  RegularizerOptions options_;
  std::vector<Parameter> parameters_;
  at::Tensor none_;  // the sum where there are none, on their device
};

}  // namespace octet::train
