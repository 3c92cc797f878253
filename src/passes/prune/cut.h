// Takes indices out of a network, or only silences them: the two must compute the same.
#pragma once
#include "passes/prune/channel_groups.h"

namespace octet::passes {

// The network without them: constants are cut, and what states sizes (groups, targets of Reshape, pieces of Split ...)
// follows. `kept` is that of ChannelGroups, of this graph. Types are inferred. Names and flags stay. A result whose
// shapes are not the expected ones is an internal error.
ir::Graph cut_channels(const ir::Graph& graph, const KeptIndices& kept);

// The whole network with a Mul by ones and zeros before every product that reads channels which would go: it makes them
// zero there, and that is all that is different.
ir::Graph mask_channels(const ir::Graph& graph, const KeptIndices& kept);

}  // namespace octet::passes
