// How much to prune, said by what is to come out of it.
#pragma once
#include <functional>
#include <optional>

#include "passes/prune/channel_groups.h"

namespace octet::passes {

// The lowest threshold whose network is small enough: `enough` is asked about some of groups.scores(), by bisection,
// and should be true above some threshold. Nothing where it is not even true of the highest.
std::optional<double> lowest_threshold(const ChannelGroups& groups,
                                       const std::function<bool(const KeptIndices&)>& enough);

}  // namespace octet::passes
