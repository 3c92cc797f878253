#include "engine/tactic_memory.h"

#include <algorithm>

namespace octet::engine {
namespace {

size_t best_at(const std::vector<TacticCost>& kernels, double price_of_mib, double bar) {
  const auto cost = [&](size_t i) { return kernels[i].microseconds + price_of_mib * kernels[i].mib; };
  size_t best = 0;
  double limit = kernels.empty() ? 0 : bar * cost(0);
  for (size_t i = 1; i < kernels.size(); ++i)
    if (cost(i) < limit) best = i, limit = cost(i);
  return best;
}

// A kernel that only the lower price pays for.
struct Offer {
  size_t step = 0, kernel = 0;
  double gain = 0, mib = 0, working_mib = 0;
};

}  // namespace

std::vector<size_t> choose_within_memory(std::span<const std::vector<TacticCost>> steps, double weights_mib,
                                         double bar) {
  std::vector<size_t> chosen;
  std::vector<Offer> offers;
  const double cheap = std::max(kCheapMiB, kCheapShare * weights_mib);
  double spent = 0, working = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    const std::vector<TacticCost>& kernels = steps[s];
    chosen.push_back(best_at(kernels, kPriceOfMiB, bar));
    if (kernels.empty()) continue;
    const TacticCost& now = kernels[chosen[s]];
    spent += now.mib, working = std::max(working, now.working_mib);
    const size_t other = best_at(kernels, kCheapPriceOfMiB, bar);
    const double gain = now.microseconds - kernels[other].microseconds, mib = kernels[other].mib - now.mib;
    if (gain > 0 && mib > 0) offers.push_back({s, other, gain, mib, kernels[other].working_mib});
  }
  std::ranges::stable_sort(offers, [](const Offer& a, const Offer& b) { return a.gain * b.mib > b.gain * a.mib; });
  for (const Offer& offer : offers) {
    const double needed = std::max(working, offer.working_mib);
    if (spent + offer.mib + needed > cheap) continue;
    spent += offer.mib, working = needed;
    chosen[offer.step] = offer.kernel;
  }
  return chosen;
}

}  // namespace octet::engine
