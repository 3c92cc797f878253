// What training leaves alone of a network: ModelOptions::freeze_blocks and freeze_bn.
//
// A frozen constant is one that is not trainable. A batch norm with scale and shift frozen uses its running statistics
// in training, too, and leaves them alone (train/executor.h): a frozen block is the same function from the first step
// to the last, whatever the batch. (In TAO, batch norms of frozen blocks go on learning.)
#pragma once
#include "ir/graph.h"
#include "models/zoo.h"

namespace octet::models {

// Works on what build_model() made of the options, and on networks that came of it: with a detector's head, with folded
// batch norms, quantized, pruned. Layers are found by name. UserError (usage) for a block that the network of the zoo
// does not have, with those it has, or where none of the block's layers is in `graph`.
void freeze(ir::Graph& graph, const ModelOptions& options);

}  // namespace octet::models
