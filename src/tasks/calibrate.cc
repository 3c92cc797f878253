#include "tasks/calibrate.h"

#include <ATen/ATen.h>

#include "train/calibration_run.h"

namespace octet::tasks {

quant::CalibrationSet observe_activations(const ir::Graph& graph, data::Loader& loader,
                                          const std::function<void(int64_t)>& progress) {
  std::optional<data::Batch> batch;  // owns the memory that the tensor below borrows
  const train::BatchSource source = [&](at::Tensor* images) {
    batch = loader.next();
    if (!batch) return false;
    *images = at::from_blob(batch->images.data(), {batch->size, batch->channels, batch->height, batch->width}, at::kFloat);
    return true;
  };
  train::CalibrationRunOptions options;
  options.on_progress = progress;
  loader.start_epoch(0);
  return train::run_calibration(graph, source, options).observers;
}

}  // namespace octet::tasks
