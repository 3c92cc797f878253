#include "metrics/scores.h"

#include <gtest/gtest.h>

#include <cmath>

namespace octet::metrics {
namespace {

TEST(LogProbability, IsThatOfTheKindOfScores) {
  const float logits[] = {1, 3, 2};
  const double sum = std::exp(1.0) + std::exp(3.0) + std::exp(2.0);
  float p[3], log_p[3];
  for (int i = 0; i < 3; ++i) {
    p[i] = static_cast<float>(std::exp(logits[i]) / sum);
    log_p[i] = std::log(p[i]);
  }
  for (int i = 0; i < 3; ++i) {
    const double right = logits[i] - std::log(sum);
    EXPECT_NEAR(log_probability(logits, ScoreKind::kLogits, i), right, 1e-12);
    EXPECT_NEAR(log_probability(p, ScoreKind::kProbabilities, i), right, 1e-6);
    EXPECT_NEAR(log_probability(log_p, ScoreKind::kLogProbabilities, i), right, 1e-6);
  }
  const float sure[] = {1, 0};
  EXPECT_TRUE(std::isfinite(log_probability(sure, ScoreKind::kProbabilities, 1)));
}

}  // namespace
}  // namespace octet::metrics
