// What the outputs of a classifier mean.
#pragma once
#include <span>
#include <vector>

namespace octet::metrics {

enum class ScoreKind {
  kLogits,            // any numbers: their softmax are the probabilities
  kProbabilities,     // the network ends in Softmax
  kLogProbabilities,  // ... in LogSoftmax
};

// The natural logarithm of the probability of `index`, one of the classes of an image. At least that of the smallest
// normal float, so that a probability that became 0 costs a finite amount.
double log_probability(std::span<const float> scores, ScoreKind kind, int index);

// Of every class of an image.
std::vector<float> probabilities(std::span<const float> scores, ScoreKind kind);

}  // namespace octet::metrics
