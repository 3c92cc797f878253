// Loss scaling: small gradients are zeros in float16, so the loss is multiplied by a factor before backward and the
// gradients are divided by it after.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

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

struct DynamicLossScaling {
  double initial = 65536;
  double growth = 2, backoff = 0.5;
  int64_t growth_interval = 2000;  // steps without an overflow after which the factor grows
};

// The factor falls where gradients overflow and grows after a time without: the rule and the defaults of
// torch.amp.GradScaler. Growth that would leave float32 is left out.
class DynamicLossScaler : public LossScaler {
 public:
  explicit DynamicLossScaler(const DynamicLossScaling& options = {});
  at::Tensor scale(const at::Tensor& loss) override;
  bool unscale(std::span<at::Tensor> gradients) override;  // float32, all on one device
  double factor() const;

 private:
  DynamicLossScaling options_;
  at::Tensor factor_;          // float32, one element
  at::Tensor growth_tracker_;  // int32, one element: steps since the last change
};

}  // namespace octet::train
