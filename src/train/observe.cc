#include "train/observe.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "train/calibration_run.h"
#include "train/step.h"

namespace octet::train {

quant::CalibrationSet observe_activations(const ir::Graph& graph, data::Loader& loader,
                                          const std::function<void(int64_t)>& progress, Communicator& communicator) {
  return observe_tensors(graph, {}, loader, progress, communicator);
}

quant::CalibrationSet observe_tensors(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                      data::Loader& loader, const std::function<void(int64_t)>& progress,
                                      Communicator& communicator, bool peaks) {
  std::optional<data::Batch> batch;  // owns the memory that the tensor below borrows
  const BatchSource source = [&](at::Tensor* images) {
    batch = loader.next();
    if (!batch) return false;
    *images = images_of(*batch);
    return true;
  };
  CalibrationRunOptions options{.communicator = communicator};
  options.on_progress = progress;
  options.tensors = tensors;
  options.peaks = peaks;
  loader.start_epoch(0);
  return run_calibration(graph, source, options).observers;
}

}  // namespace octet::train
