// Runs a graph in evaluation mode on plain buffers, for callers that do not know LibTorch: evaluation, verification and
// the comparison with other run times.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::train {

// Row-major float32, borrowed and owned.
struct FloatView {
  std::vector<int64_t> shape;
  std::span<const float> values;
};
struct FloatArray {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

class GraphRunner {
 public:
  // kFloat: with FakeQuantize nodes it is the reference of the engine, of which it shares no rule but those of a
  // quantizer. kDouble: float64 but for fake-quantization, for those who want to know what float32 loses. kInteger:
  // float32, and quantized tensors as docs/numerics.md has them (ExecutorOptions::integer_sums), for what a whole
  // network gives.
  enum class Arithmetic { kFloat, kDouble, kInteger };
  explicit GraphRunner(const ir::Graph& graph, const std::string& device = "cpu",
                       Arithmetic arithmetic = Arithmetic::kFloat);
  ~GraphRunner();
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  // One array for each input of the graph, in its order, to one for each output.
  std::vector<FloatArray> run(const std::vector<FloatView>& inputs);
  const ir::Graph& graph() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet::train
