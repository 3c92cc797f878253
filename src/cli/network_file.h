// Reading an ONNX file that a command works on.
#pragma once
#include <string>

#include "data/network_input.h"
#include "ir/graph.h"

namespace octet::cli {

// Imported, types inferred, verified, constants free of NaN and infinities. UserError naming what is wrong.
ir::Graph load_network(const std::string& path);

// How the only input of `graph` takes images. UserError (exit 2) naming it where it takes none.
data::NetworkInput image_input(const ir::Graph& graph);

}  // namespace octet::cli
