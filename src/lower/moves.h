// Nodes that move data without computing: what goes where, the same for floats and for codes.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace octet::lower {

// A box of the input that lands as a box of the output, both in ONNX order: out[to + i] = in[from + i * step]. A step
// of 0 repeats an element.
struct BoxMove {
  size_t input = 0, output = 0;
  std::vector<int64_t> size, from, step, to;
};
struct BoxMoves {
  std::vector<BoxMove> moves;
  std::optional<float> fill;  // what the rest of the output holds (Pad)
};
// Concat, Split, Slice, Pad; nothing for other nodes. UserError for bounds that are not constant, and for a Pad that
// repeats its input in thousands of pieces.
std::optional<BoxMoves> box_moves(const ir::Node& node);

// The row and the column of the input that each of the output's has.
struct PixelIndex {
  std::vector<int32_t> rows, columns;
};
// Of a Pad by reflection, edge or wrapping around the two axes of an image; nothing for other nodes.
std::optional<PixelIndex> repeated_pixels(const ir::Node& node);

}  // namespace octet::lower
