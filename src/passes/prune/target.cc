#include "passes/prune/target.h"

namespace octet::passes {

std::optional<double> lowest_threshold(const ChannelGroups& groups,
                                       const std::function<bool(const KeptIndices&)>& enough) {
  const std::vector<double> scores = groups.scores();
  if (scores.empty() || !enough(groups.at(scores.back()))) return std::nullopt;
  size_t low = 0, high = scores.size() - 1;  // the answer is in [low, high]
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (enough(groups.at(scores[middle])))
      high = middle;
    else
      low = middle + 1;
  }
  return scores[low];
}

}  // namespace octet::passes
