#include "passes/snap_biases.h"

#include "ir/query.h"
#include "numerics/quantize.h"

namespace octet::passes {
namespace {

// The FakeQuantize that makes a value, if its scale is constant and it does not merely observe.
const ir::Node* quantizer_of(const ir::Value* value) {
  const ir::Node* q = value ? value->producer : nullptr;
  if (!is_quantizer(q) || !q->input(1)->is_constant()) return nullptr;
  return q->get_string("state") == ir::kObserving ? nullptr : q;
}

}  // namespace

int snap_biases(ir::Graph& graph) {
  int count = 0;
  for (const auto& node : graph.nodes()) {
    ir::Value* bias = node->info().has(ir::trait::kWeighted) ? node->input(2) : nullptr;
    if (!bias || !bias->is_constant() || bias->type.data_type != ir::DataType::kFloat32) continue;
    const ir::Node* activation = quantizer_of(node->input(0));
    const ir::Node* weight = quantizer_of(node->input(1));
    if (!activation || !weight || !weight->input(0)->is_constant()) continue;
    const std::vector<float> scale_x = activation->input(1)->constant->to_floats();
    const std::vector<float> scale_w = weight->input(1)->constant->to_floats();
    const std::vector<float> before = bias->constant->to_floats();
    std::vector<float> values = before;
    if (scale_x.size() != 1 || (scale_w.size() != 1 && scale_w.size() != values.size())) continue;
    bool fits = true;
    for (size_t c = 0; c < values.size(); ++c) {
      const float w = scale_w.size() == 1 ? scale_w[0] : scale_w[c];
      fits = fits && numerics::bias_fits(values[c], scale_x[0], w);
      values[c] = static_cast<float>(numerics::quantize_bias(values[c], scale_x[0], w)) * (scale_x[0] * w);
    }
    if (!fits) continue;
    ++count;
    if (values == before) continue;
    ir::Tensor snapped = ir::Tensor::of<float>(bias->constant->shape(), values);
    if (bias->users.size() == 1)
      graph.set_constant(bias, std::move(snapped));
    else
      graph.set_input(node.get(), 2,
                      graph.add_constant(graph.unique_name(bias->name), std::move(snapped), bias->trainable));
  }
  return count;
}

}  // namespace octet::passes
