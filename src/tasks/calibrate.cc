#include "tasks/calibrate.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "tasks/image_graph.h"
#include "train/calibration_run.h"

namespace octet::tasks {

quant::CalibrationSet observe_activations(const ir::Graph& graph, data::Loader& loader,
                                          const std::function<void(int64_t)>& progress) {
  const ir::Graph fed = image_graph(graph);
  const int64_t at_a_time = image_input(fed).batch;
  std::optional<data::Batch> batch;  // owns the memory that the tensor below borrows
  const train::BatchSource source = [&](at::Tensor* images) {
    batch = loader.next();
    if (!batch) return false;
    OCTET_CHECK(at_a_time == 0 || batch->size == at_a_time, batch->size, " images for a network of ", at_a_time);
    *images = at::from_blob(batch->images.data(), {batch->size, batch->channels, batch->height, batch->width}, at::kFloat);
    return true;
  };
  train::CalibrationRunOptions options;
  options.on_progress = progress;
  loader.start_epoch(0);
  return train::run_calibration(fed, source, options).observers;
}

}  // namespace octet::tasks
