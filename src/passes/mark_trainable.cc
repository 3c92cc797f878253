#include "passes/mark_trainable.h"

#include "ir/query.h"
#include "ir/traits.h"

namespace octet::passes {
namespace {

// A row of as many numbers as a product has columns, added to it: how exporters write the bias of a linear layer.
bool is_bias_of_product(const ir::Node& add, const ir::Value& constant) {
  if (add.kind != ir::OpKind::kAdd || add.inputs.size() != 2 || constant.constant->size() < 2) return false;
  const ir::Node* product = ir::source(add.input(add.input(0) == &constant ? 1 : 0));
  if (!product || product->kind != ir::OpKind::kMatMul || !ir::constant_behind(product->input(1))) return false;
  const ir::Shape& columns = *ir::constant_behind(product->input(1))->type.shape;
  const ir::Shape& row = constant.constant->shape();
  return constant.constant->size() == row.back() && row.back() == columns.back();
}

bool is_trainable(const ir::Value& constant) {
  if (constant.type.data_type != ir::DataType::kFloat32) return false;
  for (const ir::Node* user : constant.users) {
    if (is_bias_of_product(*user, constant)) return true;
    for (size_t i = 0; i < user->inputs.size(); ++i) {
      if (user->inputs[i] != &constant) continue;
      if (ir::is_parameter_input(user->kind, i)) return true;
      if (!is_quantizer(user) || i != 0) continue;
      const ir::Value* quantized = user->output();
      for (const ir::Node* next : quantized->users)
        for (size_t j = 0; j < next->inputs.size(); ++j)
          if (next->inputs[j] == quantized && ir::is_parameter_input(next->kind, j)) return true;
    }
  }
  return false;
}

}  // namespace

int mark_trainable(ir::Graph& graph) {
  int count = 0;
  for (ir::Value* constant : graph.constants()) {
    constant->trainable |= is_trainable(*constant);
    count += constant->trainable;
  }
  return count;
}

}  // namespace octet::passes
