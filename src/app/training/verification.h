// The proof that an engine computes what was trained: the fake-quantized graph and the engine on the same images.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/model_cut.h"
#include "data/loader.h"
#include "data/network_input.h"
#include "engine/executor.h"
#include "ir/graph.h"
#include "tasks/task.h"

namespace octet::app {

// One quantized tensor. Each is judged by itself: the graph computes it from the engine's own codes of the tensors
// before, so a difference cannot travel.
struct TensorCheck {
  std::string tensor;
  TensorPlace place = TensorPlace::kCompared;
  std::string note;  // where it is not compared: why
  int64_t elements = 0;
  int64_t different = 0;     // codes that differ at all
  int64_t ties = 0;          // of these: by one step, and the graph's value lies on the border between the two codes
  int64_t violations = 0;    // all others: the engine is wrong there
  int64_t largest_step = 0;  // largest difference in codes
};

// One output, as numbers: the engine's beside the graph's, computed in float64 from the engine's own codes of the
// tensors before. What float32 may do to it is measured: how far LibTorch's float32 result of the same graph is from
// that.
struct ScoreCheck {
  std::string output;
  int64_t elements = 0;
  double largest_difference = 0;  // between engine and graph; infinite where one alone is not finite
  double float_error = 0;         // largest difference between the graph in float32 and in float64
  double magnitude = 0;           // largest absolute value
  bool discrete = false;          // behind an ArgMax or Floor, where the last bit decides: `different` counts
  int64_t different = 0;
  // Another order of summation errs as much as LibTorch's; 16 times that, and 8 units of the last place of the largest
  // value for the roundings that both share, are far below one step of a code.
  double tolerance() const { return 16 * float_error + 8 * 1.2e-7 * magnitude; }
};

struct Mismatch {
  int64_t image;
  std::string graph, engine;  // what each says: "class 3 (0.41)", "2 sure objects"
  int64_t different_codes;    // in the whole network, for this image's batch
};

struct Verification {
  bool predicts = false;  // the network is one of the task: its predictions are compared, too
  int64_t images = 0, agree = 0;
  tasks::Distance distance;                      // of the predictions
  tasks::Metrics graph_metrics, engine_metrics;  // empty without annotations
  std::vector<Mismatch> mismatches;
  int64_t tensor_images = 0;  // images whose tensors and scores were compared
  std::vector<TensorCheck> tensors;
  std::vector<ScoreCheck> scores;
  double agreement() const { return images ? static_cast<double>(agree) / static_cast<double>(images) : 0; }
  int64_t violations() const;
  int64_t count(TensorPlace place) const;
  // Empty where the engine computes the model; else one sentence that says what does not hold. `smallest_agreement` of
  // the predictions, and of discrete outputs.
  std::string objection(double smallest_agreement) const;
};

struct VerifyOptions {
  int64_t tensor_images = 200;  // the first images of the run whose tensors are compared; mismatching ones always are
  // How far from a rounding border, in steps, a differing code may lie: float32 summation order, and the bias that the
  // engine rounds to the accumulator's unit (half a unit is up to half a requantize multiplier, 0.01 of a step at most
  // in practice).
  double border = 0.02;
  std::function<void(int64_t done)> progress;
};

// Does `engine` compute `graph`, which has quantizers? `own`: the plan that the compiler makes of `graph` for the
// engine's input, which says what tensors an engine of it holds; `input`: that of the graph. `task` says what
// predictions are; a network that is none of it is compared by its tensors and outputs alone. Reads one epoch of
// `loader`. UserError where the two have other inputs or numbers of outputs (exit 3), or there is no image.
Verification verify_engine(const ir::Graph& graph, std::shared_ptr<const engine::Plan> own, engine::Executor& engine,
                           const data::NetworkInput& input, const tasks::Task& task, data::Loader& loader,
                           const VerifyOptions& options);

}  // namespace octet::app
