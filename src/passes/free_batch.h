// Frees the batch of a network that was exported with a fixed one.
//
// What: where every operator provably treats each image by itself, the first size of the input becomes open, and what
// names the file's batch (Reshapes to [1, -1] or [1, 197, 3, 64] ...) no longer does. Why: training needs batches, and
// calibration and evaluation are faster with them; but where something goes over the images, or gives their axis
// another meaning, only the file's own batch gives the file's results. Proof: batch_axes.h, with a prime batch, so that
// a size in which it is no factor has no part of it. Precondition: types, one input. Test:
// tests/passes/free_batch_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Whether the batch is open now, or was. Nothing changes where the proof fails.
bool free_batch(ir::Graph& graph);

// Before the batch of a network with one input is set: frees it where the file has another than `batch`. UserError
// (exit 2) naming the input where that cannot be.
void require_batch(ir::Graph& graph, int64_t batch);

}  // namespace octet::passes
