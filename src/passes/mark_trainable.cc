#include "passes/mark_trainable.h"

#include "ir/query.h"
#include "ir/traits.h"

namespace octet::passes {
namespace {

bool is_trainable(const ir::Value& constant) {
  if (constant.type.data_type != ir::DataType::kFloat32) return false;
  for (const ir::Node* user : constant.users)
    for (size_t i = 0; i < user->inputs.size(); ++i) {
      if (user->inputs[i] != &constant) continue;
      if (ir::is_parameter_input(user->kind, i)) return true;
      if (!is_quantizer(user) || i != 0) continue;
      const ir::Value* quantized = user->output();
      for (const ir::Node* next : quantized->users)
        for (size_t j = 0; j < next->inputs.size(); ++j)
          if (next->inputs[j] == quantized && ir::is_parameter_input(next->kind, j)) return true;
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
