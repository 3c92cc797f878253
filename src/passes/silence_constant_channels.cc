#include "passes/silence_constant_channels.h"

#include "ir/query.h"

namespace octet::passes {
namespace {

constexpr double kFarBelow = 1e-4;  // of epsilon

bool states_statistics(const ir::Node& node) {
  return node.kind == ir::OpKind::kBatchNormalization && node.get_int("training_mode") == 0 &&
         node.input(1)->is_constant() && node.input(4)->is_constant() &&
         node.input(1)->constant->data_type() == ir::DataType::kFloat32;
}

}  // namespace

int silence_constant_channels(ir::Graph& graph) {
  int silenced = 0;
  for (const auto& node : graph.nodes()) {
    if (!states_statistics(*node)) continue;
    std::vector<float> scale = node->input(1)->constant->to_floats();
    const std::vector<float> variance = node->input(4)->constant->to_floats();
    int found = 0;
    for (size_t c = 0; c < scale.size() && c < variance.size(); ++c)
      if (scale[c] != 0 && variance[c] >= 0 && variance[c] < kFarBelow * node->get_float("epsilon"))
        scale[c] = 0, ++found;
    if (found == 0) continue;
    silenced += found;
    ir::Value* old = node->input(1);
    ir::Tensor changed = ir::Tensor::of<float>(old->constant->shape(), scale);
    if (ir::single_use(graph, old))
      old->constant = std::move(changed);
    else
      graph.set_input(
          node.get(), 1,
          graph.add_constant(graph.unique_name(old->name + "/silenced"), std::move(changed), old->trainable));
  }
  return silenced;
}

}  // namespace octet::passes
