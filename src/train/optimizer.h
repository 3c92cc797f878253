// SGD, Adam and AdamW over the fused multi-tensor kernels of ATen (at::_fused_sgd_ ...), with parameter groups,
// clipping of the gradient norm, and an exponential moving average of the weights.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"
#include "train/options/optimizer_options.h"

namespace octet::train {

struct NamedParameter {
  std::string name;
  at::Tensor tensor;  // float32 leaf with requires_grad
  bool is_bias = false, is_norm = false;
};

class Optimizer {
 public:
  Optimizer(const OptimizerOptions& options, std::vector<NamedParameter> parameters);

  // The gradients that the parameters hold, always in the same order; zeros where backward gave none.
  std::vector<at::Tensor> gradients();
  // One update with them, at learning rate lr * factor.
  void step(double factor);
  // Forgets the gradients.
  void zero_grad();
  // Scales all gradients so that their joint L2 norm is at most `max_norm`; returns the norm before.
  double clip_grad_norm(double max_norm);

  // Everything that the next step depends on, as named tensors ("optimizer/<parameter>/momentum" ...).
  void save(checkpoint::NamedTensors& state) const;
  void load(const checkpoint::NamedTensors& state);  // UserError when an entry is missing or has another shape

 private:
  struct Group {
    double weight_decay;
    std::vector<std::string> names;
    std::vector<at::Tensor> parameters, first, second, steps;  // first: momentum or exp_avg; second: exp_avg_sq
    std::vector<at::Tensor> gradients();
  };
  OptimizerOptions options_;
  std::vector<Group> groups_;
  bool started_ = false;
};

// Exponential moving average of parameters: shadow <- decay * shadow + (1 - decay) * parameter after every step, with
// the usual ramp min(decay, (1 + n) / (10 + n)) so that short runs are not dominated by the start.
class WeightAverage {
 public:
  WeightAverage(double decay, std::vector<NamedParameter> parameters);
  void update();
  // Exchanges the averages and the live parameters; call again to return.
  void swap();
  void save(checkpoint::NamedTensors& state) const;
  void load(const checkpoint::NamedTensors& state);

 private:
  double decay_;
  int64_t updates_ = 0;
  std::vector<NamedParameter> parameters_;
  std::vector<at::Tensor> shadow_;
};

}  // namespace octet::train
