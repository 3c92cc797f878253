#include "train/adaround.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "ir/axes.h"
#include "ir/infer.h"
#include "ir/query.h"
#include "train/calibration_run.h"
#include "train/constants.h"
#include "train/executor.h"
#include "train/ops_common.h"
#include "train/optimizer.h"
#include "train/step.h"

namespace octet::train {
namespace {

// Of the rectified sigmoid h(v) = clip(sigmoid(v) (high - low) + low, 0, 1), whose ends are reached.
constexpr double kHigh = 1.1, kLow = -0.1;
// Kept inputs and targets of one layer.
constexpr int64_t kKeptBytes = int64_t{1} << 29;

// The layer by itself, from what it reads to what it makes.
ir::Graph layer_graph(const ir::Node& node) {
  ir::Graph g;
  g.name = node.name;
  std::vector<ir::Value*> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ir::Value* value = node.inputs[i];
    if (value == nullptr) {
      inputs.push_back(nullptr);
    } else if (value->is_constant()) {
      inputs.push_back(g.add_constant(value->name, *value->constant));
    } else if (i == 0) {
      ir::TensorType type = value->type;
      if (type.shape && !type.shape->empty()) type.shape->at(0) = ir::kDynamic;
      inputs.push_back(g.add_input(value->name, type));
    } else {
      const ir::Node& q = *value->producer;
      std::vector<ir::Value*> of_quantizer;
      for (const ir::Value* each : q.inputs) of_quantizer.push_back(g.add_constant(each->name, *each->constant));
      inputs.push_back(g.add_node(q.kind, q.name, of_quantizer, {value->name}, q.attributes)->output());
    }
  }
  g.add_output(g.add_node(node.kind, node.name, inputs, {node.output()->name}, node.attributes)->output());
  ir::infer_shapes(g);
  return g;
}

// What a layer learns by, images along axis 0.
struct Examples {
  at::Tensor inputs, targets;
};

class Rounder {
 public:
  Rounder(ir::Graph& graph, std::vector<at::Tensor> batches, const quant::AdaRoundOptions& options)
      : graph_(graph),
        batches_(std::move(batches)),
        options_(options),
        whole_(without_quantization(graph)),
        quantized_(graph) {}

  RoundedLayer round(const ir::Node& node) {
    const ir::Node& q = *node.input(1)->producer;
    ir::Value* weight = q.input(0);
    const Examples examples = examples_of(node);
    const ir::Graph alone = layer_graph(node);
    Executor layer(alone);

    const at::Tensor w = to_torch(*weight->constant).to(at::kFloat);
    const int64_t axis =
        q.input(1)->constant->size() > 1 ? static_cast<int64_t>(ir::normal_axis(q, q.get_int("axis"), w.dim())) : -1;
    const at::Tensor scale = along_axis(to_torch(*q.input(1)->constant).to(at::kFloat).reshape({-1}), axis, w.dim());
    const at::Tensor zero = along_axis(to_torch(*q.input(2)->constant).to(at::kFloat).reshape({-1}), axis, w.dim());
    const at::Tensor least = static_cast<double>(q.get_int("qmin")) - zero,
                     most = static_cast<double>(q.get_int("qmax")) - zero;
    const at::Tensor ratio = w / scale, below = at::floor(ratio);
    const auto on_grid = [&](const at::Tensor& up) {
      return at::minimum(at::maximum(below + up, least), most) * scale;
    };
    const auto results = [&](const at::Tensor& weights, const at::Tensor& inputs, Mode mode) {
      layer.set_override(node.input(1)->name, [&](const at::Tensor&) { return weights; });
      return layer.forward({inputs}, mode).at(0);
    };
    const auto error_of = [&](const at::Tensor& weights) {
      double sum = 0;
      for (int64_t at = 0; at < examples.inputs.size(0); at += 64) {
        const int64_t n = std::min<int64_t>(64, examples.inputs.size(0) - at);
        const at::Tensor y = results(weights, examples.inputs.narrow(0, at, n), Mode::kEval);
        sum += (y - examples.targets.narrow(0, at, n)).square().sum(at::kDouble).item<double>();
      }
      return sum / static_cast<double>(examples.targets.numel());
    };

    // h(v) is where the weight lies between its two codes.
    const at::Tensor part = at::clamp(ratio - below, 1e-4, 1 - 1e-4);
    at::Tensor v = -at::log((kHigh - kLow) / (part - kLow) - 1);
    v.set_requires_grad(true);
    OptimizerOptions adam{.type = OptimizerType::kAdam, .lr = options_.lr};
    Optimizer optimizer(adam, {{.name = weight->name, .tensor = v}});
    const auto h = [&] { return at::clamp(at::sigmoid(v) * (kHigh - kLow) + kLow, 0, 1); };
    for (int64_t step = 0; step < options_.iterations; ++step) {
      const at::AutoGradMode grad(true);
      const at::Tensor chosen = sample(examples.inputs.size(0), step), up = h();
      const at::Tensor y = results(on_grid(up), examples.inputs.index_select(0, chosen), Mode::kTrain);
      at::Tensor loss = (y - examples.targets.index_select(0, chosen)).square().sum(1).mean();
      // The exponent falls from 20 to 2 after a warm-up without the term: first where the results are best, then apart.
      const double done = static_cast<double>(step) / static_cast<double>(options_.iterations), warm_up = 0.2;
      if (done >= warm_up) {
        const double beta = 2 + 18 * std::max(0.0, 1 - (done - warm_up) / (1 - warm_up));
        loss = loss + options_.regularization * (1 - (2 * up - 1).abs().pow(beta)).sum();
      }
      v.mutable_grad() = torch::autograd::grad({loss}, {v})[0];
      optimizer.step(1);
    }
    const at::NoGradGuard no_grad;
    const at::Tensor nearest = at::minimum(at::maximum(at::round(ratio), least), most) * scale,
                     adaptive = on_grid((h() >= 0.5).to(at::kFloat));
    RoundedLayer out{.node = node.name,
                     .weight = weight->name,
                     .weights = w.numel(),
                     .nearest = error_of(nearest),
                     .adaptive = error_of(adaptive)};
    at::Tensor best = nearest;
    if (out.adaptive < out.nearest) {
      best = adaptive;
      out.moved = at::ne(at::round(adaptive / scale), at::round(nearest / scale)).sum().item<int64_t>();
    } else {
      out.adaptive = out.nearest;
    }
    weight->constant = to_constant(best.contiguous());
    quantized_.load_from(graph_);
    return out;
  }

 private:
  // Images of one step, the same for the same step.
  at::Tensor sample(int64_t images, int64_t step) const {
    const int64_t n = std::min(options_.batch_size, images);
    std::vector<int64_t> chosen(static_cast<size_t>(n));
    uint64_t state = static_cast<uint64_t>(step) * 0x9e3779b97f4a7c15u + 1;
    for (int64_t& each : chosen) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      each = static_cast<int64_t>(state % static_cast<uint64_t>(images));
    }
    return at::tensor(chosen);
  }

  Examples examples_of(const ir::Node& node) {
    std::vector<at::Tensor> inputs, targets;
    int64_t bytes = 0;
    const auto keep = [&](std::vector<at::Tensor>& to) {
      return [&](const ir::Value&, const at::Tensor& t) {
        to.push_back(t.clone());
        bytes += static_cast<int64_t>(t.nbytes());
      };
    };
    whole_.set_tap(keep(targets), {node.output()->name});
    quantized_.set_tap(keep(inputs), {node.input(0)->name});
    for (const at::Tensor& batch : batches_) {
      whole_.forward({batch}, Mode::kEval);
      quantized_.forward({batch}, Mode::kEval);
      if (bytes >= kKeptBytes) break;
    }
    whole_.set_tap({});
    quantized_.set_tap({});
    return {at::cat(inputs), at::cat(targets)};
  }

  ir::Graph& graph_;
  std::vector<at::Tensor> batches_;
  quant::AdaRoundOptions options_;
  Executor whole_, quantized_;
};

}  // namespace

bool rounds_adaptively(const ir::Node& node) {
  const bool weighted = node.kind == ir::OpKind::kConv || node.kind == ir::OpKind::kConvTranspose ||
                        node.kind == ir::OpKind::kGemm || node.kind == ir::OpKind::kMatMul;
  const ir::Node* q = weighted && node.has_input(1) ? node.input(1)->producer : nullptr;
  return q && ir::is_quantizer(q) && q->input(0)->is_constant() && q->input(0)->users.size() == 1 &&
         (!node.has_input(2) || node.input(2)->is_constant());
}

std::vector<RoundedLayer> round_adaptively(ir::Graph& graph, data::Loader& loader,
                                           const quant::AdaRoundOptions& options,
                                           const std::function<void(const RoundedLayer&)>& progress) {
  std::vector<at::Tensor> batches;
  int64_t images = 0;
  loader.start_epoch(0);
  while (images < options.images) {
    const std::optional<data::Batch> batch = loader.next();
    if (!batch) break;
    batches.push_back(images_of(*batch).clone());
    images += batch->size;
  }
  require(images > 0, "there is no image to round weights by");
  Rounder rounder(graph, std::move(batches), options);
  std::vector<RoundedLayer> out;
  for (const auto& node : graph.nodes()) {
    if (!rounds_adaptively(*node)) continue;
    out.push_back(rounder.round(*node));
    if (progress) progress(out.back());
  }
  return out;
}

}  // namespace octet::train
