// Fresh networks with what training gives them: filters of very different size, and statistics of their own. With fresh
// ones (equal norms, mean 0, variance 1) pruning has nothing to choose from, and signals die out or explode.
#pragma once
#include <random>
#include <vector>

#include "ir/graph.h"

namespace octet::testing {

inline void look_trained(ir::Graph& graph, uint32_t seed = 7) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  const auto set = [&](ir::Value* value, auto change) {
    std::vector<float> values = value->constant->to_floats();
    for (size_t i = 0; i < values.size(); ++i) values[i] = change(i, values[i]);
    graph.set_constant(value, ir::Tensor::of<float>(value->constant->shape(), values));
  };
  for (const auto& node : graph.nodes()) {
    if (node->kind == ir::OpKind::kConv || node->kind == ir::OpKind::kGemm) {
      const ir::Shape& shape = node->input(1)->constant->shape();
      std::vector<float> size(static_cast<size_t>(shape[0]));
      for (float& s : size) s = 0.02f + uniform(random);
      const size_t filter = static_cast<size_t>(ir::element_count(shape)) / size.size();
      set(node->input(1), [&](size_t i, float w) { return w * size[i / filter]; });
    }
    if (node->kind != ir::OpKind::kBatchNormalization) continue;
    for (const size_t i : {size_t{1}, size_t{4}})
      set(node->input(i), [&](size_t, float) { return 0.5f + uniform(random); });
    for (const size_t i : {size_t{2}, size_t{3}})
      set(node->input(i), [&](size_t, float) { return 0.2f * uniform(random); });
  }
}

}  // namespace octet::testing
