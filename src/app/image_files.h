// Images named on the command line, as a dataset.
#pragma once
#include <string>
#include <vector>

#include "app/experiment_data.h"

namespace octet::app {

// Files and folders (all images below them, sorted), without labels, transformed as the spec's test images; `shape` (C,
// H, W; -1: the spec's) is that of the model's input. A file that cannot be decoded is skipped and named by the loader;
// when none can be found: UserError.
DataStream open_image_files(const spec::ExperimentSpec& spec, const std::vector<std::string>& paths,
                            const std::vector<int64_t>& shape, int64_t batch_size);

// The same for a calibration: shuffled but fixed, the first `quant.calibration.images` of them, `at_a_time` (> 0) or
// the spec's number at a time.
DataStream open_calibration_files(const spec::ExperimentSpec& spec, const std::vector<std::string>& paths,
                                  const std::vector<int64_t>& shape, int64_t at_a_time);

}  // namespace octet::app
