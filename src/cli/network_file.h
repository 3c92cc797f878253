// Reading an ONNX file that a command works on.
#pragma once
#include <string>

#include "ir/graph.h"

namespace octet::cli {

// Imported, types inferred, verified, constants free of NaN and infinities. UserError naming what is wrong.
ir::Graph load_network(const std::string& path);

}  // namespace octet::cli
