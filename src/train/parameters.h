// The parameters of an executor as an optimizer takes them.
#pragma once
#include <vector>

#include "train/executor.h"
#include "train/optimizer.h"

namespace octet::train {

// In the executor's order; what an optimizer has to know of each comes from the nodes that use it. `master_weights`:
// those of a low type get a float32 copy.
std::vector<NamedParameter> classify_parameters(const Executor& executor, bool master_weights);

}  // namespace octet::train
