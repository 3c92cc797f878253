// ir::Graph -> ONNX files.
#pragma once
#include <filesystem>
#include <string>

#include "ir/graph.h"

namespace octet::onnx {

struct ExportOptions {
  int opset = 19;  // 13, 19, 20 or 21
  // A constant behind a FakeQuantize (unless that is still observing) is written as 8-bit codes and DequantizeLinear;
  // otherwise as floats with QuantizeLinear and DequantizeLinear, which keeps master weights (checkpoints).
  bool quantize_weights = true;
  // What ONNX Runtime's integer kernels want, and TensorRT refuses: biases of products with quantized inputs and
  // weights as int32 codes of scale s_x * s_w and DequantizeLinear; activations as uint8, so that s8 becomes u8 with
  // 128 added to its zero point (on x86 it has no kernels for s8 activations that several nodes read).
  bool onnxruntime_forms = false;
  // Weights and arithmetic in float16 (narrow.h) of a graph without FakeQuantize; inputs and outputs stay float32.
  bool half_precision = false;
  bool value_info = true;  // write the types of values between the nodes
};

// Names of values, nodes and initializers are kept; a dynamic leading dimension that is that of the inputs is called
// "batch". A FakeQuantize becomes a Q/DQ pair: its DequantizeLinear has its name and output. Codes are uint8 where qmin
// >= 0, int8 otherwise; what a pair cannot say (a range other than the whole type, the states "observing" and
// "learned", trainable flags) is kept in metadata_props, so that import_bytes(export_bytes(graph)) is the same graph.
// Runtimes that ignore metadata clip activations to the whole type. UserError names a node that the opset cannot
// express.
std::string export_bytes(const ir::Graph& graph, const ExportOptions& options = {});

// Writes the file atomically; nothing is left behind on failure.
void export_model(const ir::Graph& graph, const std::filesystem::path& path, const ExportOptions& options = {});

}  // namespace octet::onnx
