// Frees the batch of a network that was exported with a fixed one.
//
// What: where every operator provably treats the first axis of every tensor as images, each by itself, the first size
// of the input becomes open, and Reshapes that name the file's batch (to [1, -1], to [1, 2, 8, 8, 8]) copy the size
// instead. Why: training needs batches, and calibration and evaluation are faster with them; but where something goes
// over the first axis, or gives it another meaning, only the file's own batch gives the file's results. Proof: types
// inferred with a prime batch. What keeps it as the first size of every tensor, with no trace of it in the other sizes,
// keeps the images apart, but for Softmax, LogSoftmax, ArgMax and reversals along the first axis, which are looked for.
// Precondition: types, one input. Test: tests/passes/free_batch_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Whether the batch is open now, or was. Nothing changes where the proof fails.
bool free_batch(ir::Graph& graph);

// Before the batch of a network with one input is set: frees it where the file has another than `batch`. UserError
// (exit 2) naming the input where that cannot be.
void require_batch(ir::Graph& graph, int64_t batch);

}  // namespace octet::passes
