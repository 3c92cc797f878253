// Takes channels that are constant out of batch normalization, before it is folded into weights that are quantized.
//
// Where the variance of a channel is far below epsilon, the normalization gives its offset and next to nothing else;
// but folded it multiplies the weights by scale / sqrt(epsilon), some hundred. In float that is harmless. With
// quantized activations the channel behind it is an error of the input, a fraction of a step, times some hundred; and
// the bias lies on the accumulator's grid, whose steps have grown as much. Such channels come about in depthwise
// convolutions behind Swish: their input is a constant that no code stands for exactly.
//
// Precondition: inference form (training_mode 0); constant scale and variance.
// What: the scale becomes 0 where variance < epsilon / 10,000. The output of a channel whose input has the statistics
// that the normalization states changes by a standard deviation of less than a hundredth of its scale. Constants that
// other nodes use too are copied first.
// Test: tests/passes/silence_constant_channels_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Returns how many channels were silenced.
int silence_constant_channels(ir::Graph& graph);

}  // namespace octet::passes
