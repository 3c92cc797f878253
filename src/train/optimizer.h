// SGD, Adam, AdamW and LAMB with parameter groups, master weights, the rest of loss scaling (the gradients are divided
// by the factor), a clipped gradient norm; and an exponential moving average of the weights.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"
#include "train/multi_tensor.h"
#include "train/options/optimizer_options.h"

namespace octet::train {

struct NamedParameter {
  std::string name;
  at::Tensor tensor;  // leaf with requires_grad
  bool is_bias = false, is_norm = false;
  bool is_scale = false;  // of a quantizer, learned by LSQ: has no decay. The clip of PACT has one, as its paper wants.
  // float32, of the same layout: what is updated and averaged where `tensor` is of a low type, and rounds it.
  // Undefined: `tensor` itself.
  at::Tensor master = {};
  at::Tensor value() const { return (master.defined() ? master : tensor).detach(); }
};

// What becomes of the gradients before they are used.
struct GradientUse {
  double loss_factor = 1;  // they are those of the loss times this
  double max_norm = 0;     // largest joint L2 norm of those of the loss; larger ones are scaled down; 0: off
  bool check = false;      // make no step where one of them is not finite; always so where max_norm is set
};

struct UpdateResult {
  bool made = true;  // false: a gradient was not finite, and nothing has changed
  double norm = 0;   // before it was clipped, of the gradients of the loss; 0 where nobody asked for it
};

// What a parameter's rate is multiplied by, and its decay.
struct ParameterRule {
  double lr_mult, weight_decay;
};
ParameterRule rule_of(const OptimizerOptions& options, const NamedParameter& parameter);

class Optimizer {
 public:
  Optimizer(const OptimizerOptions& options, std::vector<NamedParameter> parameters);

  // The gradients that the parameters hold, always in the same order; zeros where backward gave none.
  std::vector<at::Tensor> gradients();
  // In their place, in that order; float32 ones will do for parameters of a low type.
  void set_gradients(std::span<const at::Tensor> gradients);
  // One update with them, at learning rate lr * factor.
  UpdateResult step(double factor, const GradientUse& use = {});
  // Forgets the gradients.
  void zero_grad();

  // Everything that the next step depends on, as named tensors ("optimizer/<parameter>/first" ...).
  void save(checkpoint::NamedTensors& state) const;
  void load(const checkpoint::NamedTensors& state);  // UserError when an entry is missing or has another shape

 private:
  struct Parameter {
    NamedParameter of;
    ParameterRule rule;
    at::Tensor first, second;  // moments; first: momentum of SGD; undefined where the rule has none
  };
  // Without rate and decay, which are those of each parameter.
  kernels::UpdateRule rule() const;

  OptimizerOptions options_;
  std::vector<Parameter> parameters_;
  int64_t steps_ = 0;  // that were made
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
