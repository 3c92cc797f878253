// Where numbers stopped being finite.
#pragma once
#include <cstdint>
#include <string>

#include "data/loader.h"
#include "train/communicator.h"
#include "train/executor.h"

namespace octet::train {

struct NotFinite {
  int64_t order = -1;  // of being computed; -1: all are finite
  std::string what;    // "'y' of node 'conv' (Conv): 3 of its 128 values are infinite or NaN"
};

// Runs the batch forward once more, as in training, and names the first tensor that holds infinities or NaN: a
// parameter, the images, or a value of the graph with the node that made it. Buffers and the step counter stay as they
// were. All ranks call it where batch norm is over the images of all.
NotFinite first_not_finite(Executor& executor, const data::Batch& batch);

// The same on all ranks: what the one found that came to it first in its computation, and its rank; empty: nothing.
std::string first_not_finite(Executor& executor, const data::Batch& batch, Communicator& communicator);

}  // namespace octet::train
