// Takes out the pairs of Squeeze and Unsqueeze that exporters without convolutions over one axis leave behind.
//
// Precondition: inferred types; Identities are gone.
// What: a Squeeze moves behind the element-wise operators, quantizers and batch norms that read it, as long as all data
// they read is squeezed along the same axes; constants they read get axes of one element there. An Unsqueeze of a
// Squeeze of the same axes goes. So Unsqueeze, Conv, Squeeze, BatchNormalization, HardSwish, Unsqueeze, Conv ... (1-D
// convolutions of Paddle) becomes one run of operators on images, in which batch norms fold and activations fuse.
// Values keep their names but for what is computed before the Squeeze now, "<value>/unsqueezed". A Squeeze moves
// nothing, so one that finds no Unsqueeze costs nothing where it ends up. Test: tests/passes/sink_squeezes_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Returns how many Unsqueezes went.
int sink_squeezes(ir::Graph& graph);

}  // namespace octet::passes
