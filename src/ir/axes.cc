#include "ir/axes.h"

#include <algorithm>
#include <numeric>

#include "ir/shape_rule_util.h"

namespace octet::ir {

std::optional<size_t> find_axis(int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) return std::nullopt;
  return static_cast<size_t>(axis < 0 ? axis + r : axis);
}

size_t normal_axis(int64_t axis, size_t rank) {
  const std::optional<size_t> normal = find_axis(axis, rank);
  if (!normal) fail("axis ", axis, " does not exist in a tensor of rank ", rank);
  return *normal;
}

size_t normal_axis(const Node& node, int64_t axis, size_t rank) {
  const std::optional<size_t> normal = find_axis(axis, rank);
  const auto r = static_cast<int64_t>(rank);
  if (!normal) misfit(node, "axis ", axis, " is outside of [", -r, ", ", r - 1, "] for ", input_text(node, 0));
  return *normal;
}

std::vector<size_t> normal_axes(const Node& node, const std::vector<int64_t>& axes, size_t rank) {
  std::vector<size_t> out;
  for (const int64_t axis : axes) {
    const size_t normal = normal_axis(node, axis, rank);
    if (std::find(out.begin(), out.end(), normal) != out.end()) misfit(node, "axis ", axis, " is named twice");
    out.push_back(normal);
  }
  return out;
}

std::vector<int64_t> all_axes(size_t rank) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

std::vector<int64_t> permutation_of(const Node& transpose, size_t rank) {
  std::vector<int64_t> perm = transpose.get_ints("perm");
  if (perm.empty()) {
    perm = all_axes(rank);
    std::reverse(perm.begin(), perm.end());
    return perm;
  }
  const std::string input = input_text(transpose, 0);
  if (perm.size() != rank) misfit(transpose, input, ": perm has ", perm.size(), " values, expected ", rank);
  std::vector<bool> seen(rank, false);
  for (const int64_t p : perm) {
    if (p < 0 || p >= static_cast<int64_t>(rank))
      misfit(transpose, input, ": perm holds ", p, "; it should name each axis from 0 to ",
             static_cast<int64_t>(rank) - 1, " once, and none by a negative number");
    if (seen[static_cast<size_t>(p)]) misfit(transpose, input, ": perm holds ", p, " twice: an axis is named twice");
    seen[static_cast<size_t>(p)] = true;
  }
  return perm;
}

}  // namespace octet::ir
