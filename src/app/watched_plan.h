// Plans whose tensors are looked at, or changed, while they run: for calibration and bias correction on the engine.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/prepared_plan.h"
#include "ir/graph.h"

namespace octet::app {

// The engine lacks something that the network has; the message names it.
class EngineCannotRun : public UserError {
 public:
  explicit EngineCannotRun(const UserError& why) : UserError(why.what(), why.code()) {}
};

struct WatchedPlan {
  std::shared_ptr<const engine::Plan> plan;
  std::shared_ptr<const engine::PreparedPlan> prepared;  // for this CPU
  std::vector<int> buffers;                              // that hold the tensors, as floats, for Executor::run_and_show
};

// Of `graph` with `tensors` as its only outputs, so that what none of them needs is not run, and without what lies
// behind the graph; with its quantizers, or without any. Kernels are chosen for one thread. EngineCannotRun.
WatchedPlan watch(const ir::Graph& graph, const std::vector<std::string>& tensors, bool quantized,
                  const std::vector<int64_t>& input_shape);

}  // namespace octet::app
