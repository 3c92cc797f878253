// The table of operators. One row of ops.def gives a kind its ONNX name, arity, attribute schema, shape rule,
// evaluation and traits.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace octet::ir {

struct Node;
class MemoryBudget;

enum class OpKind {
#define OCTET_OP(kind, ...) k##kind,
#include "ir/ops.def"
#undef OCTET_OP
};

inline constexpr int kVariadic = 1 << 20;

// What is true of a kind whatever its attributes and constants are; traits.h has what depends on these. A trait is a
// promise that something relies on, so a new kind starts with none. tests/lower/every_op_test.cc tries those that an
// evaluator can try.
namespace trait {
enum Trait : uint32_t {
  kWeighted = 1 << 0,       // a product of input 0 with weights, input 1
  kElementwise = 1 << 1,    // every element is a function of those at its place in the inputs, which broadcast
  kOperands = 1 << 2,       // all inputs are data of one kind; of the other kinds input 0 alone is (data_inputs())
  kActivation = 1 << 3,     // may end a fused kernel behind a product
  kReshapes = 1 << 4,       // the elements of input 0 in their order, under another shape
  kCommutes = 1 << 5,       // with a quantizer: see commutes_with_quantizer()
  kNeverNegative = 1 << 6,  // no element of a result is negative
  kKeepsSign = 1 << 7,      // the same, where no data input has a negative element
  kTrains0 = 1 << 8,        // input 0 is a parameter where it is a constant
  kTrains1 = 1 << 9,        // input 1 is one
  kTrains2 = 1 << 10,       // input 2 is one
  kFloatOnly = 1 << 11,     // the engine has no step on codes for it: FP32 also in a quantized network
  kNotInEngine = 1 << 12,   // the compiler refuses it
  kMoves = 1 << 13,         // picks, repeats, joins or reshapes elements of its inputs, and computes nothing
};
}  // namespace trait
using trait::Trait;

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
  // The outputs of a node whose inputs are constants: of evaluate.h, which is what to call.
  std::optional<std::vector<Tensor>> (*evaluate)(const Node&, MemoryBudget&);
  uint32_t traits;  // Trait | Trait ...

  bool has(Trait trait) const { return (traits & trait) != 0; }
  const AttributeInfo* find_attribute(std::string_view name) const;
};

const OpInfo& op_info(OpKind kind);
const std::vector<OpInfo>& all_ops();
// nullptr when Octet does not know the operator.
const OpInfo* find_op(std::string_view onnx_name);
std::string supported_op_list();  // for error messages: "Add, AveragePool, ..."

}  // namespace octet::ir
