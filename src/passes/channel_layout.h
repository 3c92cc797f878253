// Which channel of its input and of its output a weight belongs to.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace octet::passes {

// The weights of a node as a matrix of rows and columns with some taps at each place, in the order of the elements. A
// row is a channel of one side; of the other side each group of rows has channels of its own.
struct ChannelLayout {
  size_t rows = 0, columns = 0, taps = 1, groups = 1;
  bool rows_are_outputs = true;

  size_t outputs() const { return rows_are_outputs ? rows : columns * groups; }
  size_t inputs() const { return rows_are_outputs ? columns * groups : rows; }
  size_t of_columns(size_t row, size_t column) const { return row / (rows / groups) * columns + column; }
  // The channel of a place of the matrix on the side that is asked for.
  size_t channel(size_t row, size_t column, bool of_output) const {
    return of_output == rows_are_outputs ? row : of_columns(row, column);
  }
};

// Of a weighted node (quant/fusion_model.h), quantized or not. Nothing where a channel has no place of its own in the
// weights. Precondition for MatMul: inferred types.
std::optional<ChannelLayout> channel_layout(const ir::Node& node);

// An element for each place of the matrix, by rows.
std::vector<double> sums_over_taps(const ChannelLayout& layout, std::span<const float> weights);

}  // namespace octet::passes
