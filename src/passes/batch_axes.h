// Follows the images of a batch through a network that was exported with a fixed number of them.
//
// What: gives the input another batch and walks over the nodes. In every tensor that depends on the input, one axis
// must hold the images, each of them by itself: the index of the image is a part of the index along it.
// Transposes carry the axis elsewhere, Reshapes may join it with what lies behind it (rows of tokens, windows of an
// image, heads of attention) and part it again. Reshapes that name the file's sizes, Squeezes of a batch of one,
// Resizes to sizes that include the batch, and Concats with a constant that stands for every image (a class token) are
// rewritten for any batch. Why: free_batch.h. Precondition: inferred static types. Test:
// tests/passes/free_batch_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Types are then those of `batch`, which must be a prime that no size of the network has as a factor. False where a
// node mixes images, or has no rule; the graph is then of no use. UserError where no shape fits another batch.
bool follow_batch(ir::Graph& graph, int64_t batch);

}  // namespace octet::passes
