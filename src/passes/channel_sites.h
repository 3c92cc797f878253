// Where the channels of a float network may be multiplied by positive factors: activations that share their channels,
// with all weighted nodes that make them and all that read them. Dividing channel c by s[c] in the weights and biases
// of the makers, and multiplying it by s[c] in the weights of the readers, leaves what the network computes as it is.
//
// A site begins at the output of a weighted node and grows over whatever computes s * f(x) of s * x for each channel:
// Relu, LeakyRelu, PRelu, pools, means over space, Resize, and the Add of two maps of equal shape, whose operands both
// belong to it, as do their makers. It is one only where nothing else touches these values: no output of the network,
// no other operator.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::passes {

// The weights of a node as a matrix of rows and columns with some taps at each place. A row is a channel of one side;
// of the other side each group of rows has channels of its own.
struct ChannelWeights {
  ir::Node* node = nullptr;
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

struct ChannelSite {
  size_t channels = 0;
  std::vector<ChannelWeights> makers, readers;  // a node may be both
  // Clips from 0 to a number, which keep no factor: the site is one only if these may become Relu.
  std::vector<ir::Node*> ends;
};

// In the order of their first makers. Precondition: inferred types.
std::vector<ChannelSite> channel_sites(const ir::Graph& graph);

}  // namespace octet::passes
