// The binary version of CIFAR-10 and CIFAR-100: records of the label bytes and 3 x 32 x 32 bytes, red plane first.
#pragma once
#include <memory>

#include "data/dataset.h"

namespace octet::data {

// options.path is one .bin file or the directory with data_batch_{1..5}.bin and test_batch.bin (CIFAR-10), train.bin
// and test.bin (CIFAR-100, whose fine labels are taken). UserError for missing files, sizes that are no whole number of
// records, and labels out of range.
std::unique_ptr<Dataset> open_cifar(const DatasetOptions& options);

}  // namespace octet::data
