// Reading an ONNX file that a command works on.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/input_shape.h"
#include "models/zoo.h"
#include "tasks/signature.h"

namespace octet::app {

// The file with these shapes of its inputs (--input-shape, model.input_shape), types inferred, verified. A free batch
// stays free unless a shape says it, and one that the file has fixed is changed where passes/free_batch.h proves that
// it may be. UserError naming what is wrong, (exit 2) for a shape that does not fit.
ir::Graph read_network(const std::string& path, const std::vector<ir::InputShape>& shapes = {});
// The same, and constants free of NaN and infinities.
ir::Graph load_network(const std::string& path, const std::vector<ir::InputShape>& shapes = {});

// UserError (exit 2), with the flag that says it, where `network`, that of `file`, leaves the size of its images open
// and nobody has said any: nothing is run at a size that is nobody's. Says in the log
// where the channels come last.
void require_sizes(const tasks::Signature& network, const models::ModelOptions& said, const std::string& file);

}  // namespace octet::app
