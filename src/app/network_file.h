// Reading an ONNX file that a command works on.
#pragma once
#include <string>

#include "ir/graph.h"

namespace octet::app {

// Imported, types inferred, verified, constants free of NaN and infinities. UserError naming what is wrong.
ir::Graph load_network(const std::string& path);

}  // namespace octet::app
