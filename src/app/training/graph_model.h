// The Model that runs an ONNX file with LibTorch: in float32, quantized tensors as docs/numerics.md has them.
#pragma once
#include "app/model.h"

namespace octet::app {

// UserError (exit 2) for a network that is none of the task.
std::unique_ptr<Model> open_graph_model(const ModelFile& file, const tasks::Task& task);

}  // namespace octet::app
