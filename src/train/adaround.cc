#include "train/adaround.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "train/executor.h"
#include "train/layer_examples.h"
#include "train/optimizer.h"
#include "train/placed_threads.h"

namespace octet::train {
namespace {

// Of the rectified sigmoid h(v) = clip(sigmoid(v) (high - low) + low, 0, 1), whose ends are reached.
constexpr double kHigh = 1.1, kLow = -0.1;
// Kept inputs and targets of one layer.
constexpr int64_t kKeptBytes = int64_t{1} << 29;

// What one layer reads and what it should make, and the layer to try weights with.
class Trial {
 public:
  Trial(const ir::Node& node, LayerExamples& examples) : layer_(layer_graph(node)), weight_(node.input(1)->name) {
    std::vector<at::Tensor> inputs, targets;
    int64_t bytes = 0;
    examples.each(node, [&](const at::Tensor& x, const at::Tensor& y) {
      inputs.push_back(x.clone()), targets.push_back(y.clone());
      bytes += static_cast<int64_t>(x.nbytes() + y.nbytes());
      return bytes < kKeptBytes;
    });
    inputs_ = at::cat(inputs), targets_ = at::cat(targets);
  }

  // Squared error on some of the images, the same ones for the same step.
  at::Tensor loss(const at::Tensor& weights, int64_t batch, int64_t step) {
    const at::Tensor chosen = sample(batch, step);
    const at::Tensor y = results(weights, inputs_.index_select(0, chosen), Mode::kTrain);
    return (y - targets_.index_select(0, chosen)).square().sum(1).mean();
  }

  // Mean squared error over all images.
  double error(const at::Tensor& weights) {
    double sum = 0;
    for (int64_t at = 0; at < inputs_.size(0); at += 64) {
      const int64_t n = std::min<int64_t>(64, inputs_.size(0) - at);
      const at::Tensor y = results(weights, inputs_.narrow(0, at, n), Mode::kEval);
      sum += (y - targets_.narrow(0, at, n)).square().sum(at::kDouble).item<double>();
    }
    return sum / static_cast<double>(targets_.numel());
  }

 private:
  at::Tensor results(const at::Tensor& weights, const at::Tensor& inputs, Mode mode) {
    layer_.set_override(weight_, [&](const at::Tensor&) { return weights; });
    return layer_.forward({inputs}, mode).at(0);
  }

  at::Tensor sample(int64_t batch, int64_t step) const {
    const int64_t images = inputs_.size(0), n = std::min(batch, images);
    std::vector<int64_t> chosen(static_cast<size_t>(n));
    uint64_t state = static_cast<uint64_t>(step) * 0x9e3779b97f4a7c15u + 1;
    for (int64_t& each : chosen) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      each = static_cast<int64_t>(state % static_cast<uint64_t>(images));
    }
    return at::tensor(chosen);
  }

  Executor layer_;
  std::string weight_;
  at::Tensor inputs_, targets_;
};

Rounding round(const ir::Node& node, const WeightGrid& grid, LayerExamples& examples,
               const quant::AdaRoundOptions& options) {
  Trial trial(node, examples);
  const PlacedThreads placed;
  const at::Tensor ratio = grid.weights / grid.scale, below = at::floor(ratio);
  // h(v) is where the weight lies between its two codes.
  const at::Tensor part = at::clamp(ratio - below, 1e-4, 1 - 1e-4);
  at::Tensor v = -at::log((kHigh - kLow) / (part - kLow) - 1);
  v.set_requires_grad(true);
  OptimizerOptions adam{.type = OptimizerType::kAdam, .lr = options.lr};
  Optimizer optimizer(adam, {{.name = node.name, .tensor = v}});
  const auto h = [&] { return at::clamp(at::sigmoid(v) * (kHigh - kLow) + kLow, 0, 1); };
  for (int64_t step = 0; step < options.iterations; ++step) {
    const at::AutoGradMode grad(true);
    const at::Tensor up = h();
    at::Tensor loss = trial.loss(grid.clamped(below + up) * grid.scale, options.batch_size, step);
    // The exponent falls from 20 to 2 after a warm-up without the term: first where the results are best, then apart.
    const double done = static_cast<double>(step) / static_cast<double>(options.iterations), warm_up = 0.2;
    if (done >= warm_up) {
      const double beta = 2 + 18 * std::max(0.0, 1 - (done - warm_up) / (1 - warm_up));
      loss = loss + options.regularization * (1 - (2 * up - 1).abs().pow(beta)).sum();
    }
    v.mutable_grad() = torch::autograd::grad({loss}, {v})[0];
    optimizer.step(1);
  }
  const at::NoGradGuard no_grad;
  const at::Tensor codes = grid.clamped(below + (h() >= 0.5).to(at::kFloat));
  return {
      .codes = codes, .nearest = trial.error(grid.nearest() * grid.scale), .chosen = trial.error(codes * grid.scale)};
}

}  // namespace

std::vector<RoundedLayer> round_adaptively(ir::Graph& graph, data::Loader& loader,
                                           const quant::AdaRoundOptions& options,
                                           const std::function<void(const RoundedLayer&)>& progress) {
  const auto round_one = [&](const ir::Node& node, const WeightGrid& grid, LayerExamples& examples) {
    return round(node, grid, examples, options);
  };
  return round_layers(graph, loader, options.images, round_one, progress);
}

}  // namespace octet::train
