// Time of one optimizer step over the parameters of ResNet-50, with gradients of a scaled loss, clipped by their norm:
// Optimizer::step, which does all of it at once, against ATen's fused optimizer with unscaling and clipping before it
// (what torch.amp.GradScaler, clip_grad_norm_ and fused=True come to), in turns. Writes JSON to standard output.
//   fused_step [--runs N] [--threads N]
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "models/zoo.h"
#include "train/parameters.h"
#include "train/torch_runtime.h"

using namespace octet;

namespace {

constexpr double kScale = 65536, kMaxNorm = 1;

// ATen's operators, each over all tensors: unscale and check, norm and clip, update, and the cast of the weights.
struct Apart {
  std::vector<at::Tensor> weights, gradients, first, second, steps, low;
  train::OptimizerOptions options;

  void operator()() {
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> unscaled;
    for (const at::Tensor& g : gradients) unscaled.push_back(g.to(at::kFloat, false, true));
    at::Tensor found = at::zeros({1});
    at::_amp_foreach_non_finite_check_and_unscale_(unscaled, found, at::full({1}, 1 / kScale));
    const double norm = at::stack(at::_foreach_norm(unscaled)).norm().item<double>();
    if (norm > kMaxNorm) at::_foreach_mul_(unscaled, kMaxNorm / (norm + 1e-6));
    if (found.item<float>() != 0) return;
    if (options.type == train::OptimizerType::kSgd) {
      at::_fused_sgd_(weights, unscaled, first, options.weight_decay, options.momentum, options.lr, 0, false, false,
                      false);
    } else {
      at::_foreach_add_(steps, 1);
      at::_fused_adamw_(weights, unscaled, first, second, at::TensorList(), steps, options.lr, options.betas[0],
                        options.betas[1], options.weight_decay, options.eps, false, false, std::nullopt, std::nullopt);
    }
    for (size_t i = 0; i < low.size(); ++i) low[i].copy_(weights[i]);
  }
};

double milliseconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// `low`: the type of weights and gradients over float32 masters; float32: no masters.
void measure(train::OptimizerType type, at::ScalarType low, int runs, bool last) {
  models::ModelOptions resnet;
  resnet.arch = "resnet50";
  train::Executor executor(models::build_model(resnet));
  train::OptimizerOptions options;
  options.type = type;
  options.lr = 1e-3;
  options.no_decay = {};
  std::vector<train::NamedParameter> parameters = train::classify_parameters(executor, true);
  Apart apart{.options = options};
  int64_t elements = 0;
  for (train::NamedParameter& p : parameters) {
    const at::Tensor weight = p.tensor.detach();
    elements += weight.numel();
    if (low != at::kFloat) {
      p.master = weight.clone();
      p.tensor = weight.to(low).set_requires_grad(true);
      apart.low.push_back(weight.to(low));
    }
    p.tensor.mutable_grad() = (at::randn_like(weight) * 1e-3 * kScale).to(low);
    apart.weights.push_back(weight.clone());
    apart.gradients.push_back(p.tensor.grad().clone());
    apart.first.push_back(at::zeros_like(weight));
    apart.second.push_back(at::zeros_like(weight));
    apart.steps.push_back(at::zeros({}));
  }
  train::Optimizer optimizer(options, parameters);
  const auto fused = [&] { optimizer.step(1, {.loss_factor = kScale, .max_norm = kMaxNorm, .check = true}); };
  std::vector<double> ours, theirs;
  for (int i = -2; i < runs; ++i) {
    const double a = milliseconds(fused), b = milliseconds([&] { apart(); });
    if (i < 0) continue;  // the first ones touch new memory
    ours.push_back(a);
    theirs.push_back(b);
  }
  std::printf(
      "  {\"optimizer\": \"%s\", \"type\": \"%s\", \"elements\": %lld, \"fused_ms\": %.3f, \"apart_ms\": %.3f, "
      "\"times\": %.2f}%s\n",
      type == train::OptimizerType::kSgd ? "sgd" : "adamw", at::toString(low), static_cast<long long>(elements),
      median(ours), median(theirs), median(theirs) / median(ours), last ? "" : ",");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int runs = 21, threads = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--runs") == 0) runs = std::max(1, std::atoi(argv[i + 1]));
    if (std::strcmp(argv[i], "--threads") == 0) threads = std::atoi(argv[i + 1]);
  }
  train::initialize_torch();
  train::set_torch_threads(threads);
  std::printf("{\"network\": \"resnet50\", \"threads\": %d, \"runs\": %d, \"steps\": [\n", train::torch_threads(),
              runs);
  for (const at::ScalarType low : {at::kFloat, at::kHalf, at::kBFloat16}) {
    measure(train::OptimizerType::kSgd, low, runs, false);
    measure(train::OptimizerType::kAdamW, low, runs, low == at::kBFloat16);
  }
  std::printf("]}\n");
  return 0;
}
