// Running statistics of batch norms, measured anew for the weights that a training ends with. Those of the training lag
// behind the weights, belong to others than an average or the best epoch has, and under few bits follow weights that
// oscillate between two codes (Nagel et al. 2022, arXiv 2203.11086; Izmailov et al. 2018, arXiv 1803.05407,
// section 3.3).
#pragma once
#include <cstdint>

#include "data/loader.h"
#include "train/communicator.h"
#include "train/executor.h"

namespace octet::train {

// Replaces the running statistics of every batch norm that follows its batches by the mean of those of the batches that
// hold the first `images` of `epoch`, on all ranks together; at least one batch each. Nothing else changes: neither
// parameters nor scales nor the step. Returns how many batch norms these are; without one, no image is read.
int64_t reestimate_batch_norm(Executor& executor, data::Loader& loader, int epoch, int64_t images,
                              Communicator& communicator);

}  // namespace octet::train
