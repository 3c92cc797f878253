// Brings the forms that operators had in older opsets to those of the newest one, and operators that Octet lacks to
// equal combinations of those it has (Sum, GroupNormalization, Einsum ...), so that they train, quantize, compile and
// export as these do. What cannot be expressed is an error. The rules are in upgrade/, a file a subject.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::onnx {

struct SourceNode;

struct SourceBranch {
  std::string key;  // "then_branch", "else_branch", "body"
  std::vector<std::pair<std::string, ir::TensorType>> inputs;
  std::vector<SourceNode> nodes;
  std::vector<std::pair<std::string, ir::TensorType>> outputs;
};

// A node of the file, or one made from it. Names as in the file; "" is an absent optional input or output.
struct SourceNode {
  std::string op, name;
  std::vector<std::string> inputs, outputs;
  ir::Attributes attributes;
  std::vector<SourceBranch> branches;  // of an If or a Loop on its way out

  bool has_input(size_t i) const { return i < inputs.size() && !inputs[i].empty(); }
};

// What the rewrites may ask and add.
class UpgradeContext {
 public:
  virtual ~UpgradeContext() = default;
  // Shape of a value (kDynamic dimensions where unknown); nothing when the rank is unknown.
  virtual std::optional<ir::Shape> shape(const std::string& value) = 0;
  virtual ir::DataType data_type(const std::string& value) = 0;
  virtual std::optional<ir::Tensor> constant(const std::string& value) = 0;
  // Adds a constant under a new name that starts with `hint`; returns the name.
  virtual std::string add_constant(const std::string& hint, ir::Tensor tensor) = 0;
  // A constant that add_constant() made is learned in training.
  virtual void mark_parameter(const std::string& constant) { static_cast<void>(constant); }
  virtual std::string fresh_name(const std::string& hint) = 0;
};

// Operators that have a rule, all of them or in some forms.
bool is_rewritten(const std::string& op);
std::vector<std::string> rewritten_operators();

// The nodes that replace `node`, in execution order; the last has its name. UserError says what cannot be expressed,
// without naming the node.
std::vector<SourceNode> upgrade(SourceNode node, int opset, UpgradeContext& context);

}  // namespace octet::onnx
