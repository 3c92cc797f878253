#include "train/preview.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "train/options/amp.h"
#include "train/parameters.h"

namespace octet::train {
namespace {

std::vector<Preview::Group> groups_of(const OptimizerOptions& options, const std::vector<NamedParameter>& parameters) {
  std::vector<Preview::Group> out;
  for (const NamedParameter& p : parameters) {
    const ParameterRule rule = rule_of(options, p);
    const double lr = options.lr * rule.lr_mult;
    auto group = std::find_if(out.begin(), out.end(), [&](const Preview::Group& g) {
      return g.lr == lr && g.weight_decay == rule.weight_decay;
    });
    if (group == out.end())
      group = out.insert(out.end(), {.lr = lr, .weight_decay = rule.weight_decay, .first = p.name});
    ++group->tensors;
    group->elements += p.tensor.numel();
  }
  return out;
}

}  // namespace

Preview preview(const ir::Graph& executed, const TrainerOptions& options, int64_t steps_per_epoch, int64_t batch) {
  Executor executor(executed, options.executor);
  const std::vector<NamedParameter> parameters = classify_parameters(executor, options.mixed.master_weights);
  Preview out;
  out.precision = text(options.mixed);
  out.nodes = executor.node_types(batch);
  out.groups = groups_of(options.optimizer, parameters);
  for (const NamedParameter& p : parameters) out.masters |= p.master.defined();
  out.steps = options.epochs * steps_per_epoch;
  constexpr int kRates = 10;
  for (int i = 0; i <= kRates; ++i) {
    const int64_t step = std::min(out.steps * i / kRates, out.steps - 1);
    if (step < 0 || (!out.rates.empty() && out.rates.back().first == step + 1)) continue;
    const double factor = schedule_factor(options.schedule, options.optimizer.lr,
                                          {.step = step, .total = out.steps, .steps_per_epoch = steps_per_epoch});
    out.rates.emplace_back(step + 1, options.optimizer.lr * factor);
  }
  return out;
}

}  // namespace octet::train
