#include "train/layer_examples.h"

#include <ATen/ATen.h>

#include <optional>

#include "base/error.h"
#include "train/calibration_run.h"
#include "train/step.h"

namespace octet::train {

LayerExamples::LayerExamples(const ir::Graph& graph, data::Loader& loader, int64_t images)
    : whole_(without_quantization(graph)), quantized_(graph) {
  loader.start_epoch(0);
  while (images_ < images) {
    const std::optional<data::Batch> batch = loader.next();
    if (!batch) break;
    batches_.push_back(images_of(*batch).clone());
    images_ += batch->size;
  }
  require(images_ > 0, "there is no image to round weights by");
}

void LayerExamples::each(const ir::Node& node,
                         const std::function<bool(const at::Tensor& inputs, const at::Tensor& targets)>& sink) {
  at::Tensor inputs, targets;
  whole_.set_tap([&](const ir::Value&, const at::Tensor& t) { targets = t; }, {node.output()->name});
  quantized_.set_tap([&](const ir::Value&, const at::Tensor& t) { inputs = t; }, {node.input(0)->name});
  for (const at::Tensor& batch : batches_) {
    whole_.forward({batch}, Mode::kEval);
    quantized_.forward({batch}, Mode::kEval);
    if (!sink(inputs, targets)) break;
  }
  whole_.set_tap({});
  quantized_.set_tap({});
}

}  // namespace octet::train
