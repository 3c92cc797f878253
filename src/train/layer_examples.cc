#include "train/layer_examples.h"

#include <ATen/ATen.h>

#include <optional>
#include <string>

#include "base/error.h"
#include "train/calibration_run.h"
#include "train/executor.h"
#include "train/step.h"

namespace octet::train {
namespace {

// What makes this value, as its only result.
Executor up_to(const ir::Graph& graph, const std::string& value) {
  ir::Graph part = graph.clone();
  part.program = nullptr;
  for (size_t i = 0; i < part.outputs().size(); ++i) part.set_output_value(i, part.find_value(value));
  part.remove_dead();
  return Executor(part);
}

}  // namespace

LayerExamples::LayerExamples(const ir::Graph& graph, data::Loader& loader, int64_t images)
    : graph_(graph), whole_(without_quantization(graph)) {
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
  Executor whole = up_to(whole_, node.output()->name), quantized = up_to(graph_, node.input(0)->name);
  for (const at::Tensor& batch : batches_) {
    const at::Tensor inputs = quantized.forward({batch}, Mode::kEval).at(0),
                     targets = whole.forward({batch}, Mode::kEval).at(0);
    if (!sink(inputs, targets)) break;
  }
}

}  // namespace octet::train
