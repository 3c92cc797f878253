// An ONNX file as all that compiles or runs it wants it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/input_shape.h"

namespace octet::compiler {

// The file with these shapes of its inputs, types inferred, verified. A free batch stays free unless a shape says it,
// and one that the file has fixed is changed where passes/free_batch.h proves that it may be. UserError naming what is
// wrong, (exit 2) for a shape that does not fit.
ir::Graph read_network(const std::string& path, const std::vector<ir::InputShape>& shapes = {});
// The same of the bytes of a file that keeps no data in others; `name` is for messages.
ir::Graph read_network_bytes(std::string_view bytes, const std::string& name,
                             const std::vector<ir::InputShape>& shapes = {});

}  // namespace octet::compiler
