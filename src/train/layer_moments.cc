#include "train/layer_moments.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "ir/infer.h"
#include "train/executor.h"
#include "train/layer_examples.h"
#include "train/weight_rounding.h"

namespace octet::train {
namespace {

constexpr int64_t kMomentBytes = int64_t{1} << 29;
// Floats of patches that are written out at a time.
constexpr int64_t kPatchFloats = int64_t{1} << 23;

bool rows_are_inputs(const ir::Node& node) {
  return node.kind == ir::OpKind::kMatMul || (node.kind == ir::OpKind::kGemm && node.get_int("transB") == 0);
}

// [groups, taps, images * positions] of what a layer reads. A convolution over one axis is one over two.
at::Tensor patches_of(const ir::Node& node, const PatchProducts& p, const at::Tensor& x, const at::Tensor& weights) {
  if (node.kind != ir::OpKind::kConv) return x.reshape({-1, p.taps}).t().unsqueeze(0);
  const std::vector<int64_t> kernel = weights.sizes().slice(2).vec();
  ir::WindowGeometry g = ir::window_geometry(node, x.sizes().slice(2).vec(), kernel);
  const size_t n = kernel.size();
  std::vector<int64_t> pads;  // constant_pad_nd counts from the last axis
  for (size_t i = n; i-- > 0;) pads.insert(pads.end(), {g.pads[i], g.pads[i + n]});
  at::Tensor padded = at::constant_pad_nd(x, pads);
  const std::vector<int64_t> one = n == 1 ? std::vector<int64_t>{1} : std::vector<int64_t>{};
  const auto two = [&](std::vector<int64_t> values) {
    values.insert(values.begin(), one.begin(), one.end());
    return values;
  };
  if (n == 1) padded = padded.unsqueeze(2);
  const at::Tensor columns = at::im2col(padded, two(kernel), two(g.dilations), {0, 0}, two(g.strides));
  return columns.reshape({x.size(0), p.groups, p.taps, -1}).permute({1, 2, 0, 3}).reshape({p.groups, p.taps, -1});
}

// [groups, outputs, images * positions] of its results.
at::Tensor results_of(const ir::Node& node, const PatchProducts& p, const at::Tensor& y) {
  if (node.kind != ir::OpKind::kConv) return y.reshape({-1, p.outputs}).t().unsqueeze(0);
  return y.reshape({y.size(0), p.groups, p.outputs, -1}).permute({1, 2, 0, 3}).reshape({p.groups, p.outputs, -1});
}

}  // namespace

std::optional<PatchProducts> patch_products(const ir::Node& node, const at::Tensor& weights) {
  PatchProducts p;
  if (node.kind == ir::OpKind::kConv && (weights.dim() == 3 || weights.dim() == 4)) {
    p.groups = node.get_int("group");
    p.outputs = weights.size(0) / p.groups;
    p.taps = weights.numel() / weights.size(0);
  } else if (weights.dim() == 2 && (node.kind == ir::OpKind::kMatMul || node.kind == ir::OpKind::kGemm)) {
    if (node.kind == ir::OpKind::kGemm && (node.get_int("transA") != 0 || node.get_float("alpha") != 1))
      return std::nullopt;
    p.outputs = weights.size(rows_are_inputs(node) ? 1 : 0);
    p.taps = weights.size(rows_are_inputs(node) ? 0 : 1);
  } else {
    return std::nullopt;
  }
  const double bytes = static_cast<double>(p.groups * p.taps) * static_cast<double>(p.taps) * sizeof(float);
  return bytes > 0 && bytes <= kMomentBytes ? std::optional(p) : std::nullopt;
}

at::Tensor as_rows(const ir::Node& node, const PatchProducts& products, const at::Tensor& weights,
                   const at::Tensor& values) {
  const at::Tensor whole = values.expand_as(weights);
  return (rows_are_inputs(node) ? whole.t() : whole)
      .reshape({products.groups, products.outputs, products.taps})
      .contiguous();
}

at::Tensor from_rows(const ir::Node& node, const at::Tensor& weights, const at::Tensor& rows) {
  return rows_are_inputs(node) ? rows.reshape({weights.size(1), weights.size(0)}).t().contiguous()
                               : rows.reshape(weights.sizes());
}

double LayerMoments::error(const at::Tensor& change) const {
  const double moved = (change * (at::bmm(change, patches) + 2 * mixed)).sum(at::kDouble).item<double>();
  return std::max(0.0, moved + residual);  // rounding alone can make it less
}

LayerMoments layer_moments(const ir::Node& node, const PatchProducts& p, const at::Tensor& weights,
                           LayerExamples& examples) {
  Executor layer(layer_graph(node));
  layer.set_override(node.input(1)->name, [&](const at::Tensor&) { return weights; });
  LayerMoments out{.patches = at::zeros({p.groups, p.taps, p.taps}),
                   .mixed = at::zeros({p.groups, p.outputs, p.taps}),
                   .residual = 0};
  int64_t count = 0;
  examples.each(node, [&](const at::Tensor& inputs, const at::Tensor& targets) {
    const int64_t images = inputs.size(0), positions = targets.numel() / images / (p.groups * p.outputs);
    const int64_t floats = std::max<int64_t>(1, positions * p.groups * p.taps),
                  some = std::max<int64_t>(1, kPatchFloats / floats);
    for (int64_t at = 0; at < images; at += some) {
      const int64_t n = std::min(some, images - at);
      const at::Tensor x = inputs.narrow(0, at, n);
      const at::Tensor r = layer.forward({x}, Mode::kEval).at(0) - targets.narrow(0, at, n);
      const at::Tensor columns = patches_of(node, p, x, weights), across = columns.transpose(1, 2);
      out.patches.baddbmm_(columns, across);
      out.mixed.baddbmm_(results_of(node, p, r), across);
      out.residual += r.square().sum(at::kDouble).item<double>();
      count += n * positions;
    }
    return true;
  });
  out.patches /= static_cast<double>(count);
  out.mixed /= static_cast<double>(count);
  out.residual /= static_cast<double>(count);
  return out;
}

}  // namespace octet::train
