// A run of images of another dataset, as if it were all: to hold some training images out for validation, or to try
// things on a few.
#pragma once
#include <memory>

#include "data/dataset.h"

namespace octet::data {

// Images [offset, offset + count) of `dataset`; count 0: all that follow. UserError when there are fewer.
std::unique_ptr<Dataset> take_subset(std::unique_ptr<Dataset> dataset, int64_t offset, int64_t count);

}  // namespace octet::data
