// Loss scaling: small gradients are zeros in float16, so the loss is multiplied by a factor before backward and the
// gradients are divided by it after. How the factor moves is decided here, on the host: a step needs its loss there
// anyway. Without LibTorch.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "checkpoint/safetensors.h"
#include "train/options/cost_scaling.h"
#include "train/options/loss_scale.h"

namespace octet::train {

class LossScaler {
 public:
  virtual ~LossScaler() = default;
  // Of the loss, before the next backward.
  virtual double factor() const = 0;
  // After every step: whether all of its gradients were finite. Where they were not, the parameters stay as they are.
  // UserError where they never are, although the factor is as small as it gets.
  virtual void update(bool finite) = 0;
  // Then a step with gradients of zero is made after all.
  virtual bool steps_on_overflow() const { return false; }

  virtual void save(checkpoint::NamedTensors& state) const = 0;
  virtual void load(const checkpoint::NamedTensors& state) = 0;  // UserError where it is missing or impossible
};

// The scaler of torch.amp and the two of Apex, which are one rule with other numbers (LossScaleOptions): after an
// overflow the factor is multiplied by backoff_factor, but not below min_loss_scale; after growth_interval steps in a
// row without one by growth_factor, but not above max_loss_scale. A growth and a backoff of 1: a static factor.
class GradScaler : public LossScaler {
 public:
  explicit GradScaler(const LossScaleOptions& options, const std::string& name = "loss_scaler");
  double factor() const override { return static_cast<double>(factor_); }
  void update(bool finite) override;
  void save(checkpoint::NamedTensors& state) const override;
  void load(const checkpoint::NamedTensors& state) override;

 private:
  LossScaleOptions options_;
  std::string name_;
  float factor_;
  int64_t good_steps_ = 0;  // since the factor last changed
  int64_t stuck_ = 0;       // overflows in a row at a factor that falls no further
};

// One for each part of a loss, as Apex's num_losses has it; they begin when their part comes first.
class PartScalers {
 public:
  explicit PartScalers(const LossScaleOptions& options) : options_(options) {}
  GradScaler& of(const std::string& part);
  double least_factor() const;  // 1 before the first step
  void save(checkpoint::NamedTensors& state) const;
  void load(const checkpoint::NamedTensors& state);

 private:
  LossScaleOptions options_;
  std::map<std::string, GradScaler> scalers_;
};

// The rule of TAO's cost_scaling (CostScalingOptions). With an increment of 1 / 2000 it is nearly
// torch.amp.GradScaler's.
class CostScaler : public LossScaler {
 public:
  explicit CostScaler(const CostScalingOptions& options);
  double factor() const override;
  void update(bool finite) override;
  bool steps_on_overflow() const override { return options_.tao_compatible; }
  void save(checkpoint::NamedTensors& state) const override;
  void load(const checkpoint::NamedTensors& state) override;

 private:
  CostScalingOptions options_;
  double exponent_;
};

}  // namespace octet::train
