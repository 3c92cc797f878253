// Networks and the images they are fed: LibTorch runs every network on batches of [N, C, H, W], whatever its file says.
#pragma once
#include "data/network_input.h"
#include "ir/graph.h"

namespace octet::tasks {

// How the only input of `graph` takes images. UserError (exit 2) naming input and shape where it takes none.
data::NetworkInput image_input(const ir::Graph& graph);

// A copy that takes [N, C, H, W] and is the same otherwise, names of the constants and of the tensor that the network
// reads included: a Transpose stands before an input with the channels last, and the batch is free where
// passes/free_batch.h proves that it may be. Requires types.
ir::Graph image_graph(const ir::Graph& graph);

// Images at a time that image_graph(graph) takes; 0: any number.
int64_t images_at_a_time(const ir::Graph& graph);

}  // namespace octet::tasks
