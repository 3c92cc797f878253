// Some images of a dataset.
#pragma once
#include <memory>
#include <vector>

#include "data/dataset.h"

namespace octet::data {

// Those with these indices, in this order. Classes and findings stay those of the whole.
std::unique_ptr<Dataset> select(std::unique_ptr<Dataset> dataset, std::vector<int64_t> indices);

// `count` images from `offset` on; 0: all that follow. The dataset itself where that is all. UserError (exit 2) for
// images that it does not have.
std::unique_ptr<Dataset> take_subset(std::unique_ptr<Dataset> dataset, int64_t offset, int64_t count);

}  // namespace octet::data
