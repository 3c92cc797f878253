// The one meaning of an axis: a number in [-rank, rank), negative ones counted from the end. Everything that reads an
// axis of a node or of a file turns it into its normal form, [0, rank), by these.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace octet::ir {

// Nothing outside of [-rank, rank).
std::optional<size_t> find_axis(int64_t axis, size_t rank);
// The same; UserError outside.
size_t normal_axis(int64_t axis, size_t rank);
// The same, and the sentence names the node and its input 0.
size_t normal_axis(const Node& node, int64_t axis, size_t rank);
// A list, which must not name an axis twice.
std::vector<size_t> normal_axes(const Node& node, const std::vector<int64_t>& axes, size_t rank);

// 0 .. rank - 1: the axes that a list which is left out stands for.
std::vector<int64_t> all_axes(size_t rank);

// `perm` of a Transpose, all of it: each of 0 .. rank - 1 once; the reverse order where it is left out. Negative
// entries are a UserError, as in ONNX Runtime.
std::vector<int64_t> permutation_of(const Node& transpose, size_t rank);

}  // namespace octet::ir
