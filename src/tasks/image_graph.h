// Networks and the images they are fed: LibTorch runs every network on batches of [N, C, H, W], whatever its file says.
#pragma once
#include "tasks/signature.h"

namespace octet::tasks {

inline data::NetworkInput image_input(const ir::Graph& graph) {
  return image_input(signature_of(graph));
}

// A copy that takes [N, C, H, W] and is the same otherwise, names of the constants and of the tensor that the network
// reads included: a Transpose stands before an input with the channels last, and the batch is free where
// passes/free_batch.h proves that it may be. Requires types.
ir::Graph image_graph(const ir::Graph& graph);

// Images at a time that image_graph(graph) takes; 0: any number.
int64_t images_at_a_time(const ir::Graph& graph);

}  // namespace octet::tasks
