// What a person may say of the choice of channels. Names, meanings and defaults are those of TAO Toolkit's prune; what
// TAO lacks is off by default.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "schema/enum_names.h"

namespace octet::passes {

// How norms of filters of different layers become comparable: s / max(s), so that a threshold is a share of the
// largest, or s * sqrt(n) / |s|: in units of the root mean square.
enum class PruneNormalizer { kMax, kL2 };
std::span<const schema::EnumName<PruneNormalizer>> enum_names(PruneNormalizer);
// Of several layers whose channels go together: the largest of their norms, the smallest, or a mean.
enum class PruneEqualizer { kUnion, kIntersection, kArithmeticMean, kGeometricMean };
std::span<const schema::EnumName<PruneEqualizer>> enum_names(PruneEqualizer);
// The norm of a filter: of its weights, or the scale of the batch normalization behind it (Liu et al. 2017).
enum class PruneCriterion { kL1, kL2, kBatchNormScale };
std::span<const schema::EnumName<PruneCriterion>> enum_names(PruneCriterion);

struct PruneOptions {
  double threshold = 0.1;   // channels at or below this go
  int64_t granularity = 8;  // a layer keeps a multiple of this, or all
  int64_t min_filters = 16;
  PruneNormalizer normalizer = PruneNormalizer::kMax;
  PruneEqualizer equalizer = PruneEqualizer::kUnion;
  std::vector<std::string> excluded;  // globs over names of nodes: these keep all channels
  PruneCriterion criterion = PruneCriterion::kL2;
  // Norms of the weights with the batch normalization behind them folded in: what the layer really computes. Without,
  // as in TAO, a filter that its normalization silences counts as much as any other.
  bool fold_batch_norm = false;
  // Also leave whole what TAO leaves whole: what a ConvTranspose makes, and what a Split cuts.
  bool tao_compatible = false;
};

}  // namespace octet::passes
