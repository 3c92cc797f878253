// Measuring a model on the labeled images of an experiment.
#pragma once
#include <string>

#include "app/model.h"
#include "spec/experiment.h"

namespace octet::cli {

// Runs the test images (else the validation images), prints the metrics of the task with its tables, and writes them as
// JSON to `json` (empty: nowhere; "-": to the standard output, instead of the text). `file` is what the model is
// called. `batch_size` 0: that of the experiment, or the model's own. UserError (exit 2) where model, experiment and
// images do not fit.
void evaluate(spec::ExperimentSpec& spec, app::Model& model, const std::string& file, int64_t batch_size,
              const std::string& json);

}  // namespace octet::cli
