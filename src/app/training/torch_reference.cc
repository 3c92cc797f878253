#include "app/training/torch_reference.h"

#include <utility>

#include "train/graph_runner.h"

namespace octet::app {
namespace {

using train::GraphRunner;

class TorchRun : public GraphRun {
 public:
  explicit TorchRun(const ir::Graph& graph, GraphRunner::Arithmetic arithmetic = GraphRunner::Arithmetic::kFloat)
      : runner_(graph, "cpu", arithmetic) {}
  std::vector<FloatArray> run(const std::vector<FloatView>& inputs) override {
    std::vector<train::FloatView> views;
    for (const FloatView& input : inputs) views.push_back({input.shape, input.values});
    std::vector<FloatArray> out;
    for (train::FloatArray& array : runner_.run(views))
      out.push_back({std::move(array.shape), std::move(array.values)});
    return out;
  }

 private:
  GraphRunner runner_;
};

}  // namespace

std::unique_ptr<GraphRun> TorchReference::whole(const ir::Graph& graph) const {
  return std::make_unique<TorchRun>(graph, GraphRunner::Arithmetic::kInteger);
}

std::unique_ptr<GraphRun> TorchReference::pieces(const ir::Graph& graph, size_t /*scores*/) const {
  return std::make_unique<TorchRun>(graph);
}

std::unique_ptr<GraphRun> TorchReference::exact(const ir::Graph& graph) const {
  return std::make_unique<TorchRun>(graph, GraphRunner::Arithmetic::kDouble);
}

}  // namespace octet::app
