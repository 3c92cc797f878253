#include "lower/moves.h"

#include <algorithm>

#include "base/error.h"
#include "base/padded_place.h"
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

// What a Pad adds before and behind each axis; less than nothing where it cuts off.
struct Padding {
  std::vector<int64_t> before, behind;
};

Padding padding_of(const Node& node) {
  const size_t rank = shape_of(node.input(0)).size();
  const auto pads = constant_ints(node, 1);
  std::vector<int64_t> axes = ir::all_axes(rank);
  if (node.has_input(3)) axes = constant_ints(node, 3);
  require(pads.size() == 2 * axes.size(), "Pad '", node.name, "': ", pads.size(), " pads for ", axes.size(), " axes");
  Padding out{.before = std::vector<int64_t>(rank, 0), .behind = std::vector<int64_t>(rank, 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = ir::normal_axis(node, axes[i], rank);
    out.before[axis] = pads[i], out.behind[axis] = pads[i + axes.size()];
  }
  return out;
}

std::string mode_of(const Node& pad) {
  return pad.get_string("mode", "constant");
}

// A part of an axis: out[to + i] = in[from + i * step].
struct Run {
  int64_t size, from, step, to;
};

// Elements of an axis that are seen at `begin` to `end` of the padded one, as few runs.
void add_runs(const Node& pad, int64_t begin, int64_t end, int64_t before, int64_t size, std::vector<Run>& runs) {
  constexpr int64_t kLongest = int64_t{1} << 24;
  require(end - begin <= kLongest, "Pad '", pad.name, "': ", end - begin, " elements beside an axis of ", size,
          " are more than the engine repeats (", kLongest, ")");
  const size_t first = runs.size();
  const std::string mode = mode_of(pad);
  for (int64_t i = begin; i < end; ++i) {
    const auto place = padded_place(i - before, size, mode);
    if (!place) return;  // of the fill
    if (runs.size() > first) {
      Run& run = runs.back();
      const int64_t step = *place - (run.from + (run.size - 1) * run.step);
      if (run.size == 1 ? step >= -1 && step <= 1 : step == run.step) {
        run.step = step, ++run.size;
        continue;
      }
    }
    runs.push_back({.size = 1, .from = *place, .step = 1, .to = i});
  }
}

std::vector<Run> padded_axis(const Node& pad, int64_t size, int64_t before, int64_t behind) {
  const int64_t whole = before + size + behind, begin = std::max<int64_t>(before, 0),
                end = std::min(before + size, whole);
  std::vector<Run> runs;
  if (begin < end) runs.push_back({.size = end - begin, .from = begin - before, .step = 1, .to = begin});
  if (mode_of(pad) == "constant") return runs;
  add_runs(pad, 0, std::min(begin, whole), before, size, runs);
  add_runs(pad, std::max<int64_t>(before + size, 0), whole, before, size, runs);
  return runs;
}

BoxMoves pad(const Node& node) {
  constexpr size_t kMostMoves = 4096;
  const ir::Shape& in = shape_of(node.input(0));
  const Padding padding = padding_of(node);
  BoxMoves out{.moves = {whole(in, 0, 0)}};
  for (size_t axis = 0; axis < in.size(); ++axis) {
    const std::vector<Run> runs = padded_axis(node, in[axis], padding.before[axis], padding.behind[axis]);
    require(out.moves.size() * runs.size() <= kMostMoves, "Pad '", node.name, "': it repeats its input in more than ",
            kMostMoves, " pieces");
    std::vector<BoxMove> moves;
    for (const BoxMove& box : out.moves)
      for (const Run& run : runs) {
        BoxMove& move = moves.emplace_back(box);
        move.size[axis] = run.size, move.from[axis] = run.from, move.step[axis] = run.step, move.to[axis] = run.to;
      }
    out.moves = std::move(moves);
  }
  if (mode_of(node) != "constant") return out;
  out.fill = 0;
  if (node.has_input(2)) {
    const auto value = constant_floats(node.input(2));
    require(value && value->size() == 1, "Pad '", node.name, "': its value is not a constant number");
    out.fill = (*value)[0];
  }
  return out;
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

std::optional<PixelIndex> repeated_pixels(const Node& node) {
  if (node.kind != OpKind::kPad || mode_of(node) == "constant") return std::nullopt;
  const ir::Shape &in = shape_of(node.input(0)), &out = shape_of(node.output());
  const Padding padding = padding_of(node);
  if (in.size() != 4) return std::nullopt;
  for (const size_t axis : {size_t{0}, size_t{1}})
    if (padding.before[axis] != 0 || padding.behind[axis] != 0) return std::nullopt;
  constexpr int64_t kLongest = int64_t{1} << 24;
  const std::string mode = mode_of(node);
  const auto index = [&](size_t axis) {
    std::vector<int32_t> places;
    for (int64_t i = 0; i < out[axis]; ++i)
      places.push_back(static_cast<int32_t>(*padded_place(i - padding.before[axis], in[axis], mode)));
    return places;
  };
  for (const size_t axis : {size_t{2}, size_t{3}})
    if (in[axis] == 0 || in[axis] > kLongest || out[axis] > kLongest) return std::nullopt;
  return PixelIndex{.rows = index(2), .columns = index(3)};
}

}  // namespace octet::lower
