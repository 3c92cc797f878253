#include "train/options/optimizer_options.h"

#include <fnmatch.h>

#include <algorithm>

#include "schema/schema.h"

namespace octet::train {

OCTET_ENUM_NAMES(OptimizerType, {OptimizerType::kSgd, "sgd"}, {OptimizerType::kAdam, "adam"},
                 {OptimizerType::kAdamW, "adamw"}, {OptimizerType::kLamb, "lamb"})
OCTET_ENUM_NAMES(NoDecay, {NoDecay::kBias, "bias"}, {NoDecay::kNorm, "norm"})

void describe(schema::Section& s, ParameterGroup& group) {
  s.field("name", group.name)
      .known_elsewhere_as({"params", "pattern"})
      .help("Glob over names of parameters, in which * also stands for /, as in \"head/*\".");
  s.field("lr_mult", group.lr_mult).range(0, 1e6).help("Factor on lr; 0: they stay as they are.");
  s.field("decay_mult", group.decay_mult).range(0, 1e6).help("Factor on weight_decay.");
}

void describe(schema::Section& s, OptimizerOptions& optimizer) {
  s.field("type", optimizer.type).known_elsewhere_as({"name"}).help("Update rule.");
  s.field("lr", optimizer.lr)
      .above(0, 1000)
      .known_elsewhere_as({"learning_rate", "base_lr", "max_learning_rate"})
      .help("Highest learning rate.");
  s.field("momentum", optimizer.momentum).range(0, 1).help("sgd: share of the old direction that stays.");
  s.field("nesterov", optimizer.nesterov).help("sgd: look ahead along the momentum.");
  s.field("wd_after_momentum", optimizer.wd_after_momentum)
      .help("sgd: add the decay to the step and not to the gradient, as Apex's FusedSGD can.");
  s.field("betas", optimizer.betas)
      .range(0, 1)
      .length(2, 2)
      .help("adam, adamw, lamb: shares of the old first and second moment that stay.");
  s.field("eps", optimizer.eps)
      .above(0, 1)
      .known_elsewhere_as({"epsilon"})
      .help("adam, adamw, lamb: added to the denominator.");
  s.field("bias_correction", optimizer.bias_correction)
      .help("adam, adamw, lamb: divide the moments by 1 - beta^t, as they start at zero; false: as the first BERT.");
  s.field("use_nvlamb", optimizer.use_nvlamb)
      .help("lamb: scale the steps of parameters without decay by the trust ratio, too.");
  s.field("weight_decay", optimizer.weight_decay)
      .range(0, 10)
      .known_elsewhere_as({"decay", "l2"})
      .help(
          "L2 term (sgd, adam) or decoupled decay (adamw, lamb). Adam makes updates of one size of small gradients and "
          "of "
          "large ones, so that an L2 term outweighs a small loss, as a detector's is.");
  s.field("no_decay", optimizer.no_decay)
      .help("Parameters without weight decay: biases, scale and shift of normalizations.");
  s.list("groups", optimizer.groups)
      .length(0, 1000)
      .known_elsewhere_as({"param_groups", "parameter_groups", "paramwise_cfg"})
      .help(
          "Parameters with another rate or decay, as in [{name: \"head/*\", lr_mult: 10}]; the first that fits counts. "
          "`no_decay` holds for them, too.");
  s.rule("groups", [&optimizer]() -> std::string {
    for (const ParameterGroup& group : optimizer.groups)
      if (group.name.empty()) return "has an item without a name";
    return "";
  });
  s.rule("nesterov", [&optimizer] {
    const bool without = optimizer.type == OptimizerType::kSgd && optimizer.nesterov && optimizer.momentum <= 0;
    return without ? "needs a momentum above 0" : "";
  });
  s.rule("betas", [&optimizer] {
    const auto too_large = [](double beta) { return beta >= 1; };
    return std::any_of(optimizer.betas.begin(), optimizer.betas.end(), too_large) ? "must be less than 1" : "";
  });
}

ParameterGroup group_of(const OptimizerOptions& options, const std::string& parameter) {
  for (const ParameterGroup& group : options.groups)
    if (fnmatch(group.name.c_str(), parameter.c_str(), 0) == 0) return group;
  return {};
}

}  // namespace octet::train
