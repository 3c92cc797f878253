// Where indices of Gather and Scatter lead.
#pragma once
#include "dense/tensor.h"

namespace octet::dense {

// `index` counted from the front. UserError outside the axis.
int64_t normal_index(int64_t index, int64_t length);

// Ranges of a tensor that rows of indices name: the last axis of the indices is one index for each leading axis.
struct Slots {
  std::vector<int64_t> first;  // element of each range
  int64_t size = 1;            // elements of a range
  size_t axes = 0;             // of the tensor that the indices and the batch axes take
};
Slots slots_of(const Shape& data, const Shape& indices, const std::vector<int64_t>& values, size_t batch_axes);

}  // namespace octet::dense
