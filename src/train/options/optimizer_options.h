// What an optimizer is told.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "schema/enum_names.h"

namespace octet::train {

enum class OptimizerType { kSgd, kAdam, kAdamW, kLamb };
// Parameters without decay: biases (names that end in bias, and other vectors of a weighted layer), scale and shift of
// a normalization.
enum class NoDecay { kBias, kNorm };
std::span<const schema::EnumName<OptimizerType>> enum_names(OptimizerType);
std::span<const schema::EnumName<NoDecay>> enum_names(NoDecay);

// Parameters with a rate and a decay of their own.
struct ParameterGroup {
  std::string name;                    // glob over names of parameters ("head/*", as fnmatch with * also matching /)
  double lr_mult = 1, decay_mult = 1;  // on `lr` and `weight_decay`
};
void describe(schema::Section& s, ParameterGroup& group);

struct OptimizerOptions {
  OptimizerType type = OptimizerType::kSgd;
  double lr = 0.1;
  double momentum = 0.9;                     // sgd
  bool nesterov = false;                     // sgd
  bool wd_after_momentum = false;            // sgd: the decay is no part of the momentum
  std::vector<double> betas = {0.9, 0.999};  // the others
  double eps = 1e-8;                         // the others
  bool bias_correction = true;               // the others: of moments that start at zero
  bool use_nvlamb = false;                   // lamb: the trust ratio also where there is no decay
  double weight_decay = 0;
  std::vector<NoDecay> no_decay = {NoDecay::kBias, NoDecay::kNorm};
  std::vector<ParameterGroup> groups;  // the first that fits a name counts
};
void describe(schema::Section& s, OptimizerOptions& optimizer);

// The multipliers of the parameter with this name: 1 where no group has it.
ParameterGroup group_of(const OptimizerOptions& options, const std::string& parameter);

}  // namespace octet::train
