// ONNX files -> ir::Graph.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/input_shape.h"

namespace octet::onnx {

inline constexpr int kOldestOpset = 7, kNewestOpset = 25;  // of the default domain, as read

// The operators of ONNX's default domain that a model may hold, in alphabetical order; some in some forms, those of
// folded_operators() (fold.h) on constants and shapes alone.
std::vector<std::string> supported_operators();

struct ImportOptions {
  // Shapes of inputs, by name, for sizes that the file leaves open: the graph has these, and what is computed from them
  // is a constant. UserError (exit 2) where they contradict the file. Only the first size of an input, the batch, may
  // be another than the file's, which then stays: whether it can be changed is for passes/free_batch.h to prove.
  std::vector<ir::InputShape> input_shapes;
};

// Reads a model: operators in the form of the newest opset, constants and shape arithmetic folded away, Q/DQ pairs
// fused into FakeQuantize (see fuse_qdq.h), types inferred, verified. Names of values, nodes and initializers are those
// of the file; nodes without one get that of their first output. A dynamic dimension is kDynamic; the leading dynamic
// dimension of every input is taken for the batch. Nodes that no output needs are left out. metadata_props become
// Graph::metadata. Data types stay as they are (a float16 model is a float16 graph). Initializers are trainable where
// the file was written by Octet and says so (passes/mark_trainable.h marks those of other files).
//
// UserError, starting with the file's name, for anything else than a well-formed model of opset 7 to 25 that Octet can
// represent exactly: unsupported operators (with node, domain and the list of supported ones), damaged or truncated
// bytes, external data outside of the model's folder. Any bytes are safe to read.
ir::Graph import_model(const std::filesystem::path& path, const ImportOptions& options = {});

// The same for a model in memory; external data files are looked for in `directory`, and refused when it is empty.
ir::Graph import_bytes(std::string_view bytes, const std::filesystem::path& directory_of_external_data,
                       const ImportOptions& options = {});

}  // namespace octet::onnx
