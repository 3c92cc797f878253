// Loss scaling: small gradients are zeros in float16, so the loss is multiplied by a factor before backward and the
// gradients are divided by it after.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>

#include "checkpoint/safetensors.h"
#include "train/options/cost_scaling.h"

namespace octet::train {

// Called by the step, once each.
class LossScaler {
 public:
  virtual ~LossScaler() = default;
  // What backward descends instead of `loss`.
  virtual at::Tensor scale(const at::Tensor& loss) = 0;
  // Makes the gradients of the scaled loss those of the loss, in place. False where one of them is not finite: the
  // parameters must stay as they are.
  virtual bool unscale(std::span<at::Tensor> gradients) = 0;
};

// The factor falls where gradients overflow and grows without: the rule of TAO's cost_scaling (CostScalingOptions).
// With an increment of 1 / 2000 it is nearly torch.amp.GradScaler's.
class DynamicLossScaler : public LossScaler {
 public:
  explicit DynamicLossScaler(const CostScalingOptions& options);
  at::Tensor scale(const at::Tensor& loss) override;
  // float32, all on one device. UserError where they are not finite although the factor is as small as it gets.
  bool unscale(std::span<at::Tensor> gradients) override;
  double factor() const;

  void save(checkpoint::NamedTensors& state) const;
  void load(const checkpoint::NamedTensors& state);

 private:
  CostScalingOptions options_;
  double exponent_;
};

}  // namespace octet::train
