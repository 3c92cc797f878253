// What the rivals' compilers want of a quantized graph.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "passes/pipeline.h"

namespace octet::app {

// What single targets want of a quantized graph, beside passes::export_passes(). `target`: onnxruntime, openvino,
// tensorrt, tensorrt:VERSION (8.0 and later). For TensorRT, which takes symmetric int8 only, unsigned activations
// become signed ones of half the resolution, with a warning that names how many; the scale axis of ConvTranspose
// weights follows the version. UserError (exit 2) for an unknown target.
std::vector<passes::Pass> target_passes(const std::string& target);

struct ExportPreparation {
  bool drop_quantizers = false;       // a float model again, whatever the target
  std::filesystem::path dump_passes;  // a folder for the text of the graph after each pass; empty: none
};

// "ONNX Runtime will run 20 of 21 convolutions and products in INT8 (the others: ...)", with what to do where it is not
// all; for what is written for `target` (as above) and was quantized as the graph's metadata say.
std::string integer_products_text(const ir::Graph& graph, const std::string& target);

// Runs the passes of every export and those of the target.
void prepare_for_target(ir::Graph& graph, const std::string& target, const ExportPreparation& options);

}  // namespace octet::app
