// What an optimizer is told.
#pragma once
#include <span>
#include <vector>

#include "schema/enum_names.h"

namespace octet::train {

enum class OptimizerType { kSgd, kAdam, kAdamW };
// Parameters without decay: biases (names that end in bias, and other vectors of a weighted layer), scale and shift of
// a normalization.
enum class NoDecay { kBias, kNorm };
std::span<const schema::EnumName<OptimizerType>> enum_names(OptimizerType);
std::span<const schema::EnumName<NoDecay>> enum_names(NoDecay);

struct OptimizerOptions {
  OptimizerType type = OptimizerType::kSgd;
  double lr = 0.1;
  double momentum = 0.9;                     // sgd
  bool nesterov = false;                     // sgd
  std::vector<double> betas = {0.9, 0.999};  // adam, adamw
  double eps = 1e-8;                         // adam, adamw
  double weight_decay = 0;
  std::vector<NoDecay> no_decay = {NoDecay::kBias, NoDecay::kNorm};
};
void describe(schema::Section& s, OptimizerOptions& optimizer);

}  // namespace octet::train
