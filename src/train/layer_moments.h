// Second moments of what a layer reads: with them the error of its results is known for any weights.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "ir/graph.h"

namespace octet::train {

class LayerExamples;

// How a layer multiplies: for each of `groups`, a matrix [outputs, taps] of weights with patches of its input.
struct PatchProducts {
  int64_t groups = 1, outputs = 0, taps = 0;
};
// None for a layer that does not, or whose moments would be larger than half a GiB.
std::optional<PatchProducts> patch_products(const ir::Node& node, const at::Tensor& weights);

// `values`, in the shape of the layer's weights or one that broadcasts to it, as [groups, outputs, taps]; and back.
at::Tensor as_rows(const ir::Node& node, const PatchProducts& products, const at::Tensor& weights,
                   const at::Tensor& values);
at::Tensor from_rows(const ir::Node& node, const at::Tensor& weights, const at::Tensor& rows);

// Means over images and positions. With x a patch, r the error of the layer's results with its float weights and W a
// change of these, as rows, the squared error of the results is tr(W E[x x'] W') + 2 tr(W E[x r']) + E[r' r].
struct LayerMoments {
  at::Tensor patches;  // E[x x'], [groups, taps, taps]
  at::Tensor mixed;    // E[r x'], [groups, outputs, taps]
  double residual = 0;

  // Summed over outputs. At least 0.
  double error(const at::Tensor& change) const;
};
LayerMoments layer_moments(const ir::Node& node, const PatchProducts& products, const at::Tensor& weights,
                           LayerExamples& examples);

}  // namespace octet::train
