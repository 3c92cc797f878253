#include "train/loss_scaler.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "train/saved_tensors.h"

namespace octet::train {
namespace {

// 2^x and 2^-x are normal numbers of float32. Gradients that overflow at the lower end do so without any factor, too.
constexpr double kLeast = -100, kGreatest = 126;

// So many overflows in a row that a factor which falls no further does not end are no accident.
constexpr int64_t kPatience = 100;

const std::string kParts = "loss_scaler/part/";
constexpr const char* kExponent = "loss_scaler/exponent";

double saved_number(const checkpoint::NamedTensors& state, const std::string& key) {
  const ir::Tensor& saved = saved_entry(state, key);
  if (saved.data_type() != ir::DataType::kFloat64 || !saved.shape().empty())
    fail("the checkpoint's '", key, "' is no number of float64");
  return saved.values<double>()[0];
}

}  // namespace

GradScaler::GradScaler(const LossScaleOptions& options, const std::string& name)
    : options_(options), name_(name), factor_(static_cast<float>(options.init_scale)) {
  OCTET_CHECK(options.growth_factor >= 1 && options.backoff_factor > 0 && options.backoff_factor <= 1 &&
              options.growth_interval >= 1);
  if (options_.max_loss_scale > 0) factor_ = std::min(factor_, static_cast<float>(options_.max_loss_scale));
  OCTET_CHECK(factor_ > 0 && std::isfinite(factor_));
}

void GradScaler::update(bool finite) {
  if (!finite) {
    const float smaller =
        std::max(static_cast<float>(factor() * options_.backoff_factor), static_cast<float>(options_.min_loss_scale));
    stuck_ = smaller == factor_ ? stuck_ + 1 : 0;
    if (!std::isnormal(smaller) || stuck_ >= kPatience)
      fail("gradients are not finite although the loss is scaled by ", factor_,
           "; lower the learning rate, or train in fp32 to see where");
    factor_ = smaller;
    good_steps_ = 0;
    return;
  }
  stuck_ = 0;
  if (++good_steps_ >= options_.growth_interval) {
    const float larger = static_cast<float>(factor() * options_.growth_factor);
    const float limit = options_.max_loss_scale > 0 ? static_cast<float>(options_.max_loss_scale) : larger;
    if (std::isfinite(larger)) factor_ = std::min(larger, limit);
    good_steps_ = 0;
  }
}

void GradScaler::save(checkpoint::NamedTensors& state) const {
  state[name_ + "/factor"] = ir::Tensor::scalar<double>(factor());
  state[name_ + "/good_steps"] = ir::Tensor::scalar<int64_t>(good_steps_);
}

void GradScaler::load(const checkpoint::NamedTensors& state) {
  const double factor = saved_number(state, name_ + "/factor");
  const int64_t good_steps = saved_entry(state, name_ + "/good_steps").to_ints().at(0);
  if (!std::isnormal(static_cast<float>(factor)) || factor <= 0)
    fail("the checkpoint's '", name_, "/factor' is ", factor);
  if (good_steps < 0) fail("the checkpoint's '", name_, "/good_steps' is ", good_steps);
  factor_ = static_cast<float>(factor);
  good_steps_ = good_steps;
}

GradScaler& PartScalers::of(const std::string& part) {
  return scalers_.try_emplace(part, options_, kParts + part).first->second;
}

double PartScalers::least_factor() const {
  double least = 1;
  bool first = true;
  for (const auto& [part, scaler] : scalers_) {
    least = first ? scaler.factor() : std::min(least, scaler.factor());
    first = false;
  }
  return least;
}

void PartScalers::save(checkpoint::NamedTensors& state) const {
  for (const auto& [part, scaler] : scalers_) scaler.save(state);
}

void PartScalers::load(const checkpoint::NamedTensors& state) {
  constexpr std::string_view kEnd = "/factor";
  for (const auto& [key, tensor] : state)
    if (key.starts_with(kParts) && key.ends_with(kEnd))
      of(key.substr(kParts.size(), key.size() - kParts.size() - kEnd.size())).load(state);
}

CostScaler::CostScaler(const CostScalingOptions& options) : options_(options), exponent_(options.initial_exponent) {
  OCTET_CHECK(exponent_ >= kLeast && exponent_ <= kGreatest && options.increment >= 0 && options.decrement > 0);
}

double CostScaler::factor() const {
  return std::exp2(std::floor(exponent_));
}

void CostScaler::update(bool finite) {
  if (finite) {
    exponent_ = std::min(exponent_ + options_.increment, kGreatest);
    return;
  }
  if (exponent_ <= kLeast)
    fail("gradients are not finite although the loss is scaled by 2^", kLeast,
         "; lower the learning rate, or train without cost_scaling to see where");
  exponent_ = std::max(exponent_ - options_.decrement, kLeast);
}

void CostScaler::save(checkpoint::NamedTensors& state) const {
  state[kExponent] = ir::Tensor::scalar<double>(exponent_);
}

void CostScaler::load(const checkpoint::NamedTensors& state) {
  const double exponent = saved_number(state, kExponent);
  if (!(exponent >= kLeast && exponent <= kGreatest)) fail("the checkpoint's '", kExponent, "' is ", exponent);
  exponent_ = exponent;
}

}  // namespace octet::train
