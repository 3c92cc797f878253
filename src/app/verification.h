// The proof that an engine computes what was trained: the fake-quantized graph and the engine on the same images.
#pragma once
#include <functional>
#include <memory>

#include "app/reference.h"
#include "app/verification_result.h"
#include "data/loader.h"
#include "data/network_input.h"
#include "engine/executor.h"
#include "ir/graph.h"
#include "tasks/task.h"

namespace octet::app {

struct VerifyOptions {
  int64_t tensor_images = 200;  // the first images of the run whose tensors are compared; mismatching ones always are
  // How far from a rounding border, in steps, a differing code may lie: float32 summation order, and the bias that the
  // engine rounds to the accumulator's unit (half a unit is up to half a requantize multiplier, 0.01 of a step at most
  // in practice). Behind a function on lines (kernels/code_function.h) kernels::kLineError is added.
  double border = 0.02;
  std::function<void(int64_t done)> progress;
};

// Does `engine` compute `graph`, which has quantizers? `own`: the plan that the compiler makes of `graph` for the
// engine's input, which says what tensors an engine of it holds; `input`: that of the graph. `reference` computes the
// graph. `task` says what predictions are; a network that is none of it, or that the reference does not run as a whole,
// is compared by its tensors and outputs alone, and then no more images are read than those. Reads one epoch of
// `loader`. UserError where the two have other inputs or numbers of outputs (exit 3), or there is no image.
Verification verify_engine(const ir::Graph& graph, std::shared_ptr<const engine::Plan> own, engine::Executor& engine,
                           const data::NetworkInput& input, const Reference& reference, const tasks::Task& task,
                           data::Loader& loader, const VerifyOptions& options);

}  // namespace octet::app
