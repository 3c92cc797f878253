#include "metrics/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace octet::metrics {

double log_probability(std::span<const float> scores, ScoreKind kind, int index) {
  const double score = scores[static_cast<size_t>(index)];
  if (kind == ScoreKind::kLogProbabilities) return score;
  if (kind == ScoreKind::kProbabilities) return std::log(std::max<double>(score, std::numeric_limits<float>::min()));
  double largest = scores[0], sum = 0;
  for (float s : scores) largest = std::max<double>(largest, s);
  for (float s : scores) sum += std::exp(s - largest);
  return score - largest - std::log(sum);
}

}  // namespace octet::metrics
