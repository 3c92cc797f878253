#include "lower/moves.h"

#include <algorithm>

#include "base/error.h"
#include "ir/axes.h"
#include "ir/query.h"
#include "lower/quant_params.h"

namespace octet::lower {
namespace {

using ir::Node;
using ir::OpKind;

std::vector<int64_t> constant_ints(const Node& node, size_t input) {
  require(node.input(input)->is_constant(), node.info().name, " '", node.name, "': its input '",
          node.input(input)->name, "' is not a constant; the engine compiles fixed shapes only");
  return node.input(input)->constant->to_ints();
}

BoxMove whole(const ir::Shape& shape, size_t input, size_t output) {
  const std::vector<int64_t> zero(shape.size(), 0);
  return {.input = input,
          .output = output,
          .size = shape,
          .from = zero,
          .step = std::vector<int64_t>(shape.size(), 1),
          .to = zero};
}

BoxMoves concat(const Node& node) {
  BoxMoves out;
  const size_t axis = ir::normal_axis(node, node.get_int("axis"), shape_of(node.output()).size());
  int64_t at = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    BoxMove move = whole(shape_of(node.input(i)), i, 0);
    move.to[axis] = at;
    at += move.size[axis];
    out.moves.push_back(std::move(move));
  }
  return out;
}

BoxMoves split(const Node& node) {
  BoxMoves out;
  const size_t axis = ir::normal_axis(node, node.get_int("axis"), shape_of(node.input(0)).size());
  int64_t at = 0;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    require(node.output(i) != nullptr, "Split '", node.name, "': output ", i, " is left out");
    BoxMove move = whole(shape_of(node.output(i)), 0, i);
    move.from[axis] = at;
    at += move.size[axis];
    out.moves.push_back(std::move(move));
  }
  return out;
}

BoxMoves slice(const Node& node) {
  const ir::Shape& in = shape_of(node.input(0));
  const auto starts = constant_ints(node, 1);
  std::vector<int64_t> axes = ir::all_axes(starts.size()), steps(starts.size(), 1);
  if (node.has_input(3)) axes = constant_ints(node, 3);
  if (node.has_input(4)) steps = constant_ints(node, 4);
  require(axes.size() == starts.size() && steps.size() == starts.size(), "Slice '", node.name,
          "': starts, axes and steps differ in length");
  BoxMove move = whole(shape_of(node.output()), 0, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t a = ir::normal_axis(node, axes[i], in.size());
    int64_t start = starts[i] < 0 ? starts[i] + in[a] : starts[i];
    start = std::clamp<int64_t>(start, 0, steps[i] > 0 ? in[a] : in[a] - 1);
    // A step beyond the axis takes one element and goes nowhere; as it stands it would overflow the strides.
    move.from[a] = start, move.step[a] = move.size[a] > 1 ? steps[i] : 1;
  }
  return {.moves = {move}};
}

BoxMoves pad(const Node& node) {
  const ir::Shape& in = shape_of(node.input(0));
  require(node.get_string("mode", "constant") == "constant", "Pad '", node.name, "': mode '", node.get_string("mode"),
          "' is not supported by the engine; only constant padding is");
  const auto pads = constant_ints(node, 1);
  std::vector<int64_t> axes = ir::all_axes(in.size());
  if (node.has_input(3)) axes = constant_ints(node, 3);
  require(pads.size() == 2 * axes.size(), "Pad '", node.name, "': ", pads.size(), " pads for ", axes.size(), " axes");
  BoxMove move = whole(in, 0, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    require(pads[i] >= 0 && pads[i + axes.size()] >= 0, "Pad '", node.name,
            "': negative padding is not supported by the engine");
    move.to[ir::normal_axis(node, axes[i], in.size())] = pads[i];
  }
  float fill = 0;
  if (node.has_input(2)) {
    const auto value = constant_floats(node.input(2));
    require(value && value->size() == 1, "Pad '", node.name, "': its value is not a constant number");
    fill = (*value)[0];
  }
  return {.moves = {move}, .fill = fill};
}

}  // namespace

std::optional<BoxMoves> box_moves(const Node& node) {
  switch (node.kind) {
    case OpKind::kConcat:
      return concat(node);
    case OpKind::kSplit:
      return split(node);
    case OpKind::kSlice:
      return slice(node);
    case OpKind::kPad:
      return pad(node);
    default:
      return std::nullopt;
  }
}

}  // namespace octet::lower
