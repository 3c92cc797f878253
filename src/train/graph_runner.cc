#include "train/graph_runner.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "train/executor.h"
#include "train/torch_runtime.h"

namespace octet::train {

struct GraphRunner::State {
  Executor executor;
};

GraphRunner::GraphRunner(const ir::Graph& graph, const std::string& device, Arithmetic arithmetic) {
  initialize_torch();
  const auto precision = arithmetic == Arithmetic::kDouble ? Precision::kFloat64 : Precision::kFloat32;
  state_ = std::make_unique<State>(State{Executor(graph, {.device = device, .precision = precision})});
}

GraphRunner::~GraphRunner() = default;

const ir::Graph& GraphRunner::graph() const {
  return state_->executor.graph();
}

std::vector<FloatArray> GraphRunner::run(const std::vector<FloatView>& inputs) {
  std::vector<at::Tensor> tensors;
  for (const FloatView& view : inputs) {
    tensors.push_back(at::from_blob(const_cast<float*>(view.values.data()), view.shape, at::kFloat));
    OCTET_CHECK(tensors.back().numel() == static_cast<int64_t>(view.values.size()));
  }
  std::vector<FloatArray> out;
  for (const at::Tensor& tensor : state_->executor.forward(std::move(tensors), Mode::kEval)) {
    const at::Tensor plain = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
    const float* first = plain.const_data_ptr<float>();
    out.push_back({plain.sizes().vec(), {first, first + plain.numel()}});
  }
  return out;
}

}  // namespace octet::train
