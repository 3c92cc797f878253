// ShuffleNet's change of the order of channels (Zhang et al. 2018), which files write as three operators: Reshape to
// groups of channels, Transpose of group and channel, Reshape back. In NHWC it is one pass over each pixel.
#pragma once
#include <optional>

#include "ir/graph.h"

namespace octet::lower {

struct ChannelShuffle {
  const ir::Value* x;  // [N, C, H, W]
  int64_t groups;      // channel i of group g becomes channel i * groups + g
};

// Of which `node` is the last Reshape, with nobody else reading what lies between; nothing for other nodes. Requires
// types.
std::optional<ChannelShuffle> channel_shuffle(const ir::Graph& graph, const ir::Node& node);

}  // namespace octet::lower
