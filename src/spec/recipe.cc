#include "spec/recipe.h"

#include <algorithm>
#include <cmath>

namespace octet::spec {

OCTET_ENUM_NAMES(Recipe, {Recipe::kInt8, "int8"}, {Recipe::kEfficientNet, "efficientnet"}, {Recipe::kW4A4, "w4a4"})

quant::QuantOptions quantization_of(Recipe recipe) {
  quant::QuantOptions out;
  switch (recipe) {
    case Recipe::kInt8:
      break;
    case Recipe::kEfficientNet:
      out.qat_mode = quant::QatMode::kWithBn;
      out.placement.asymmetric_activations = true;
      break;
    case Recipe::kW4A4:
      out.placement.weight_bits = out.placement.activation_bits = 4;
      out.placement.unsigned_activations = true;
      out.training = {.activations = quant::ScaleGradient::kLsq, .weights = quant::ScaleGradient::kLsq};
      break;
  }
  return out;
}

train::TrainOptions finetune_of(Recipe recipe, const train::TrainOptions& train) {
  // Ten per cent of the epochs at a hundredth of the rate is the usual length of a quantization-aware fine-tune. Four
  // bits take longer, and a network that has not converged goes on learning.
  const double epochs = recipe == Recipe::kInt8 ? 0.1 : recipe == Recipe::kEfficientNet ? 0.3 : 0.5;
  const double rate = recipe == Recipe::kEfficientNet ? 0.3 : 0.01;
  train::TrainOptions out = train;
  out.epochs = std::max<int64_t>(1, std::llround(static_cast<double>(train.epochs) * epochs));
  out.optimizer.lr = train.optimizer.lr * rate;
  out.schedule.min_lr = train.schedule.min_lr * rate;
  out.schedule.warmup = 0.0;
  return out;
}

}  // namespace octet::spec
