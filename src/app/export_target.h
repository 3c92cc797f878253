// What the rivals' compilers want of a quantized graph.
#pragma once
#include <string>

#include "ir/graph.h"

namespace octet::app {

// `target`: onnxruntime, openvino, tensorrt, tensorrt:VERSION (8.0 and later). Folds batch norms. For TensorRT, which
// takes symmetric int8 only, unsigned activations become signed ones of half the resolution, with a warning that names
// how many; the scale axis of ConvTranspose weights follows the version. UserError (exit 2) for an unknown target.
void prepare_for_target(ir::Graph& graph, const std::string& target);

// Takes the quantizers out: a float model again.
void drop_quantizers(ir::Graph& graph);

}  // namespace octet::app
