#include "train/gptq.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "train/layer_examples.h"
#include "train/layer_moments.h"
#include "train/parallel.h"
#include "train/placed_threads.h"

namespace octet::train {
namespace {

// Weights of a row that are rounded before those behind them hear of it all at once.
constexpr int64_t kBlock = 128;
// Of coordinate descent, which mostly ends after three or four.
constexpr int kMostSweeps = 20;
// Where so much does not help, what the layer reads is not finite.
constexpr double kMostDamping = 1000;

// One layer; all tensors are [groups, outputs, taps] and contiguous but where something else is said.
struct Problem {
  at::Tensor weights, scale, low, high;  // low, high: the codes below and above, the same one at an end of the grid
  at::Tensor patches, mixed;             // of LayerMoments, damped
};

at::Tensor damped(const at::Tensor& moments, double damping) {
  at::Tensor out = moments.clone();
  at::Tensor diagonal = out.diagonal(0, 1, 2);
  // What is added to the mean keeps patches that are 0 everywhere from having no inverse.
  diagonal += damping * diagonal.mean(-1, true) + 1e-12;
  return out;
}

// Rounds `n` weights of each row, from `first` on, and moves those of them that follow. `upper`: the Cholesky factor of
// the inverse of `patches`. Returns what is left to those behind, [groups, outputs, n].
at::Tensor round_block(at::Tensor& weights, at::Tensor& codes, const Problem& p, const at::Tensor& upper, int64_t first,
                       int64_t n) {
  const int64_t groups = weights.size(0), outputs = weights.size(1), taps = weights.size(2);
  at::Tensor errors = at::empty({groups, outputs, n});
  parallel_for(groups * outputs, 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * taps + first;
      float *w = weights.data_ptr<float>() + at, *q = codes.data_ptr<float>() + at,
            *error = errors.data_ptr<float>() + row * n;
      const float *low = p.low.const_data_ptr<float>() + at, *high = p.high.const_data_ptr<float>() + at,
                  *scale = p.scale.const_data_ptr<float>() + at;
      const float* factors = upper.const_data_ptr<float>() + (row / outputs) * taps * taps + first * taps + first;
      for (int64_t j = 0; j < n; ++j, factors += taps) {
        q[j] = std::clamp(std::nearbyint(w[j] / scale[j]), low[j], high[j]);
        error[j] = (w[j] - q[j] * scale[j]) / factors[j];
        for (int64_t t = j + 1; t < n; ++t) w[t] -= error[j] * factors[t];
      }
    }
  });
  return errors;
}

// Taps in the order of `order` [groups, 1, taps].
at::Tensor in_order(const at::Tensor& rows, const at::Tensor& order) {
  return rows.gather(2, order.expand_as(rows)).contiguous();
}

// None where the matrices are not positive definite, to float32.
std::optional<at::Tensor> cholesky(const at::Tensor& matrices) {
  const auto [lower, info] = at::linalg_cholesky_ex(matrices);
  return info.any().item<bool>() ? std::nullopt : std::optional(lower);
}

// The codes that GPTQ finds; none where the moments have no inverse.
std::optional<at::Tensor> compensated(const Problem& p) {
  // The taps that count most come first, while there are others to make up for their errors.
  const at::Tensor order =
      at::argsort(p.patches.diagonal(0, 1, 2), /*stable=*/true, -1, /*descending=*/true).unsqueeze(1);
  const std::optional<at::Tensor> lower = cholesky(in_order(in_order(p.patches, order).transpose(1, 2), order));
  if (!lower) return std::nullopt;
  const std::optional<at::Tensor> of_inverse = cholesky(at::cholesky_inverse(*lower));
  if (!of_inverse) return std::nullopt;
  const at::Tensor upper = of_inverse->transpose(1, 2).contiguous();
  // Where the error would be least if weights were not codes: what the layers before have changed is made up for.
  at::Tensor weights = (in_order(p.weights, order) -
                        at::cholesky_solve(in_order(p.mixed, order).transpose(1, 2), *lower).transpose(1, 2))
                           .contiguous();
  const Problem ordered{.weights = {},
                        .scale = in_order(p.scale, order),
                        .low = in_order(p.low, order),
                        .high = in_order(p.high, order),
                        .patches = {},
                        .mixed = {}};
  at::Tensor codes = at::empty_like(weights);
  const int64_t taps = weights.size(2);
  for (int64_t first = 0; first < taps; first += kBlock) {
    const int64_t n = std::min(kBlock, taps - first), rest = taps - first - n;
    const at::Tensor errors = round_block(weights, codes, ordered, upper, first, n);
    if (rest > 0)
      weights.narrow(2, first + n, rest).sub_(at::bmm(errors, upper.narrow(1, first, n).narrow(2, first + n, rest)));
  }
  return at::empty_like(codes).scatter_(2, order.expand_as(codes), codes);
}

// Moves single weights to their other code while the error falls.
void descend(at::Tensor& codes, const Problem& p) {
  const int64_t groups = codes.size(0), outputs = codes.size(1), taps = codes.size(2);
  at::Tensor gradients = (at::bmm(codes * p.scale - p.weights, p.patches) + p.mixed).contiguous();
  parallel_for(groups * outputs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * taps;
      float *q = codes.data_ptr<float>() + at, *gradient = gradients.data_ptr<float>() + at;
      const float *low = p.low.const_data_ptr<float>() + at, *high = p.high.const_data_ptr<float>() + at,
                  *scale = p.scale.const_data_ptr<float>() + at;
      const float* moments = p.patches.const_data_ptr<float>() + (row / outputs) * taps * taps;
      bool moved = true;
      for (int sweep = 0; moved && sweep < kMostSweeps; ++sweep) {
        moved = false;
        for (int64_t j = 0; j < taps; ++j) {
          const float other = q[j] == low[j] ? high[j] : low[j], change = (other - q[j]) * scale[j];
          // Less than what float32 tells apart is no gain: the descent would go to and fro.
          const float own = change * change * moments[j * taps + j];
          if (2 * change * gradient[j] + own >= -1e-5f * own) continue;
          moved = true, q[j] = other;
          for (int64_t t = 0; t < taps; ++t) gradient[t] += change * moments[j * taps + t];
        }
      }
    }
  });
}

Rounding round(const ir::Node& node, const WeightGrid& grid, LayerExamples& examples, double damping) {
  const at::NoGradGuard no_grad;
  const at::Tensor& w = grid.weights;
  const std::optional<PatchProducts> products = patch_products(node, w);
  if (!products) return {};
  const LayerMoments moments = layer_moments(node, *products, w, examples);
  const PlacedThreads placed;
  const auto rows = [&](const at::Tensor& values) { return as_rows(node, *products, w, values); };
  const at::Tensor below = at::floor(w / grid.scale);
  Problem problem{.weights = rows(w),
                  .scale = rows(grid.scale),
                  .low = rows(grid.clamped(below)),
                  .high = rows(grid.clamped(below + 1)),
                  .patches = {},
                  .mixed = moments.mixed};
  for (; damping <= kMostDamping; damping *= 10) {
    problem.patches = damped(moments.patches, damping);
    std::optional<at::Tensor> codes = compensated(problem);
    if (!codes) continue;
    descend(*codes, problem);
    const auto error = [&](const at::Tensor& of) { return moments.error(of * problem.scale - problem.weights); };
    return {.codes = from_rows(node, w, *codes), .nearest = error(rows(grid.nearest())), .chosen = error(*codes)};
  }
  return {};
}

}  // namespace

std::vector<RoundedLayer> round_by_gptq(ir::Graph& graph, data::Loader& loader, const quant::GptqOptions& options,
                                        const std::function<void(const RoundedLayer&)>& progress) {
  const auto round_one = [&](const ir::Node& node, const WeightGrid& grid, LayerExamples& examples) {
    return round(node, grid, examples, options.damping);
  };
  return round_layers(graph, loader, options.images, round_one, progress);
}

}  // namespace octet::train
