#include "train/options/optimizer_options.h"

#include <algorithm>

#include "schema/schema.h"

namespace octet::train {

OCTET_ENUM_NAMES(OptimizerType, {OptimizerType::kSgd, "sgd"}, {OptimizerType::kAdam, "adam"},
                 {OptimizerType::kAdamW, "adamw"})
OCTET_ENUM_NAMES(NoDecay, {NoDecay::kBias, "bias"}, {NoDecay::kNorm, "norm"})

void describe(schema::Section& s, OptimizerOptions& optimizer) {
  s.field("type", optimizer.type).known_elsewhere_as({"name"}).help("Update rule.");
  s.field("lr", optimizer.lr)
      .above(0, 1000)
      .known_elsewhere_as({"learning_rate", "base_lr", "max_learning_rate"})
      .help("Highest learning rate.");
  s.field("momentum", optimizer.momentum).range(0, 1).help("sgd: share of the old direction that stays.");
  s.field("nesterov", optimizer.nesterov).help("sgd: look ahead along the momentum.");
  s.field("betas", optimizer.betas)
      .range(0, 1)
      .length(2, 2)
      .help("adam, adamw: shares of the old first and second moment that stay.");
  s.field("eps", optimizer.eps)
      .above(0, 1)
      .known_elsewhere_as({"epsilon"})
      .help("adam, adamw: added to the denominator.");
  s.field("weight_decay", optimizer.weight_decay)
      .range(0, 10)
      .known_elsewhere_as({"decay", "l2"})
      .help(
          "L2 term (sgd, adam) or decoupled decay (adamw). Adam makes updates of one size of small gradients and of "
          "large ones, so that an L2 term outweighs a small loss, as a detector's is.");
  s.field("no_decay", optimizer.no_decay)
      .help("Parameters without weight decay: biases, scale and shift of normalizations.");
  s.rule("nesterov", [&optimizer] {
    const bool without = optimizer.type == OptimizerType::kSgd && optimizer.nesterov && optimizer.momentum <= 0;
    return without ? "needs a momentum above 0" : "";
  });
  s.rule("betas", [&optimizer] {
    const auto too_large = [](double beta) { return beta >= 1; };
    return std::any_of(optimizer.betas.begin(), optimizer.betas.end(), too_large) ? "must be less than 1" : "";
  });
}

}  // namespace octet::train
