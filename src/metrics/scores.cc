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

std::vector<float> probabilities(std::span<const float> scores, ScoreKind kind) {
  std::vector<float> out(scores.begin(), scores.end());
  if (kind == ScoreKind::kProbabilities || out.empty()) return out;
  const double shift = kind == ScoreKind::kLogits ? *std::max_element(out.begin(), out.end()) : 0;
  double sum = 0;
  for (float s : scores) sum += std::exp(s - shift);
  if (kind == ScoreKind::kLogProbabilities) sum = 1;
  for (float& value : out) value = static_cast<float>(std::exp(value - shift) / sum);
  return out;
}

}  // namespace octet::metrics
