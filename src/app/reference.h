// Who computes the model that an engine is held against: LibTorch (app/training/torch_reference.h), or the plain rules
// of ir/evaluate.h (app/plain_reference.h). Neither shares code with the engine but numerics/.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace octet::app {

// Row-major float32, borrowed and owned.
struct FloatView {
  std::vector<int64_t> shape;
  std::span<const float> values;
};
struct FloatArray {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

class GraphRun {
 public:
  virtual ~GraphRun() = default;
  // One array for each input of the graph, in its order, to one for each output.
  virtual std::vector<FloatArray> run(const std::vector<FloatView>& inputs) = 0;
};

class Reference {
 public:
  virtual ~Reference() = default;
  // The whole model; nullptr where that takes too long to be of use.
  virtual std::unique_ptr<GraphRun> whole(const ir::Graph& graph) const = 0;
  // CutModel::pieces in float32; the first `scores` of its outputs are what another order of summation than the
  // engine's may give.
  virtual std::unique_ptr<GraphRun> pieces(const ir::Graph& graph, size_t scores) const = 0;
  // CutModel::scores in float64, but for fake-quantization.
  virtual std::unique_ptr<GraphRun> exact(const ir::Graph& graph) const = 0;
};

}  // namespace octet::app
