// The inverse of cross-layer equalization: networks that compute what they did, but whose channels have very different
// ranges, as training sometimes leaves them. Knows nothing of the pass that mends them.
#pragma once
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/query.h"

namespace octet::testing {

// By powers of two no value loses a bit: exponents between -most and most.
inline std::vector<int> random_exponents(std::mt19937& random, size_t channels, int most) {
  std::uniform_int_distribution<int> draw(-most, most);
  std::vector<int> out(channels);
  for (int& e : out) e = draw(random);
  return out;
}

// Multiplies what a constant has for channel c of `axis` by 2^(sign * exponents[c]).
inline void multiply_channels(ir::Graph& graph, ir::Value* constant, size_t axis, const std::vector<int>& exponents,
                              int sign) {
  const ir::Tensor& old = *constant->constant;
  size_t inner = 1;
  for (size_t d = axis + 1; d < old.shape().size(); ++d) inner *= static_cast<size_t>(old.shape()[d]);
  std::vector<float> values = old.to_floats();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::ldexp(values[i], sign * exponents[i / inner % exponents.size()]);
  graph.set_constant(constant, ir::Tensor::of<float>(old.shape(), values));
}

// Of a Conv without groups, a depthwise one, or a Gemm with transB.
inline void spoil_maker(ir::Graph& graph, const ir::Node& node, const std::vector<int>& exponents) {
  multiply_channels(graph, node.input(1), 0, exponents, 1);
  if (node.has_input(2)) multiply_channels(graph, node.input(2), 0, exponents, 1);
}
inline void spoil_reader(ir::Graph& graph, const ir::Node& node, const std::vector<int>& exponents) {
  const bool depthwise = node.kind == ir::OpKind::kConv && node.get_int("group") > 1;
  multiply_channels(graph, node.input(1), depthwise ? 0 : 1, exponents, -1);
}

// All pairs of layers with nothing but Relu, pools and Flatten between them, each value with one reader. Returns how
// many.
inline int spoil_pairs(ir::Graph& graph, int most_exponent, uint32_t seed = 5) {
  std::mt19937 random(seed);
  const auto has_weights = [](const ir::Node& node) {
    return node.kind == ir::OpKind::kConv || node.kind == ir::OpKind::kGemm;
  };
  int pairs = 0;
  for (const auto& node : graph.nodes()) {
    if (!has_weights(*node)) continue;
    const ir::Node* reader = ir::only_reader(graph, node->output());
    while (reader && (reader->kind == ir::OpKind::kRelu || reader->kind == ir::OpKind::kMaxPool ||
                      reader->kind == ir::OpKind::kGlobalAveragePool || reader->kind == ir::OpKind::kFlatten))
      reader = ir::only_reader(graph, reader->output());
    if (!reader || !has_weights(*reader)) continue;
    const auto channels = static_cast<size_t>(node->input(1)->constant->shape()[0]);
    const std::vector<int> exponents = random_exponents(random, channels, most_exponent);
    spoil_maker(graph, *node, exponents);
    spoil_reader(graph, *reader, exponents);
    ++pairs;
  }
  return pairs;
}

}  // namespace octet::testing
