// The table of operators. One row of ops.def gives a kind its ONNX name, arity, attribute schema and shape rule.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace octet::ir {

struct Node;

enum class OpKind {
#define OCTET_OP(kind, ...) k##kind,
#include "ir/ops.def"
#undef OCTET_OP
};

inline constexpr int kVariadic = 1 << 20;

// One attribute that a kind knows. `type` is "int", "float", "string", "ints", "floats", "strings" or "tensor".
struct AttributeInfo {
  std::string name, type;
  std::string default_text;  // empty: no default
};

struct OpInfo {
  OpKind kind;
  const char* name;  // that of ONNX
  int min_inputs, max_inputs, max_outputs;
  std::vector<AttributeInfo> attributes;
  void (*infer)(Node&);  // sets the type of every output from those of the inputs; UserError when they do not fit

  const AttributeInfo* find_attribute(std::string_view name) const;
};

const OpInfo& op_info(OpKind kind);
const std::vector<OpInfo>& all_ops();
// nullptr when Octet does not know the operator.
const OpInfo* find_op(std::string_view onnx_name);
std::string supported_op_list();  // for error messages: "Add, AveragePool, ..."

}  // namespace octet::ir
