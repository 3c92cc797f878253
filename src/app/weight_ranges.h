// What quantization makes of the weights of a network, for the report.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::app {

struct WeightRange {
  std::string tensor;  // the weights
  ir::Shape shape;
  double least = 0, largest = 0;              // of the values
  double least_scale = 0, largest_scale = 0;  // one for all, or one for each channel
  double clipped = 0;                         // share of the values that lie beyond the codes
  double sqnr_db = 0;  // signal to noise of the quantized weights; infinite where nothing is lost
};

// Of every quantizer of constants with two axes or more, in the order of the graph.
std::vector<WeightRange> weight_ranges(const ir::Graph& graph);

}  // namespace octet::app
