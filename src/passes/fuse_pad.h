// Moves explicit zero padding into the node that reads it.
//
// Precondition: inferred types.
// What: Pad(constant 0, constant sizes >= 0, only behind the first two axes) read by
//  - Conv without auto_pad: its pads grow;
//  - AveragePool without auto_pad, ceil_mode 0, dilations 1, and no pads of its own unless they count: pads grow, and
//  padding counts;
//  - MaxPool without auto_pad, ceil_mode 0, dilations 1, of a tensor that cannot be negative, if no window lies in the
//  padding alone.
// Each such reader then reads the unpadded tensor; the Pad goes when it has no other reader.
// Test: tests/passes/rewrites_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Returns how many readers took their padding over.
int fuse_pad(ir::Graph& graph);

}  // namespace octet::passes
