#include "passes/mark_trainable.h"

#include "ir/query.h"

namespace octet::passes {
namespace {

using ir::OpKind;

// Is input `index` of a node of this kind something that training changes?
bool is_parameter_input(OpKind kind, size_t index) {
  switch (kind) {
    case OpKind::kConv:
    case OpKind::kConvTranspose:
    case OpKind::kGemm:
    case OpKind::kBatchNormalization:
      return index == 1 || index == 2;
    case OpKind::kMatMul:
      return true;  // only a constant operand comes here
    case OpKind::kPRelu:
      return index == 1;
    default:
      return false;
  }
}

bool is_trainable(const ir::Value& constant) {
  if (constant.type.data_type != ir::DataType::kFloat32) return false;
  for (const ir::Node* user : constant.users)
    for (size_t i = 0; i < user->inputs.size(); i++) {
      if (user->inputs[i] != &constant) continue;
      if (is_parameter_input(user->kind, i)) return true;
      if (!is_quantizer(user) || i != 0) continue;
      const ir::Value* quantised = user->output();
      for (const ir::Node* next : quantised->users)
        for (size_t j = 0; j < next->inputs.size(); j++)
          if (next->inputs[j] == quantised && is_parameter_input(next->kind, j)) return true;
    }
  return false;
}

}  // namespace

int mark_trainable(ir::Graph& graph) {
  int count = 0;
  for (ir::Value* constant : graph.constants()) {
    constant->trainable = is_trainable(*constant);
    count += constant->trainable;
  }
  return count;
}

}  // namespace octet::passes
