// What the tie rules share. Private to tie_rules_*.cc.
#pragma once
#include <optional>
#include <vector>

#include "ir/index_ties.h"

namespace octet::ir {

// Is the number of places along an axis the size that the type says (not open, not beyond kMaxAxis)?
bool is_whole(const IndexTies& t, const Value* value, size_t axis);

// Axes of several values that are one axis of the network; `axis` counts from the end of each shape where `aligned` is
// of numpy's broadcasting. Tied index by index. Nothing is mentioned where one of them has an open size, since what
// belongs to what is not known then; values of size 1 that are repeated along a longer axis are left out.
struct AxisOf {
  const Value* value;
  size_t axis;
};
void tie_together(IndexTies& t, const AxisOf& whole, const std::vector<AxisOf>& others);

// Along output axis `axis` of the broadcast values.
void tie_broadcast(IndexTies& t, const Value* out, size_t axis, const std::vector<const Value*>& values);

// All axes of x and y (of one shape) but some.
void tie_all_axes(IndexTies& t, const Value* x, const Value* y, const std::vector<size_t>& but = {});

// The present values of a list.
std::vector<const Value*> present(const std::vector<Value*>& values);
// Are the ranks of all present values known?
bool ranks_known(const std::vector<const Value*>& values);

}  // namespace octet::ir
