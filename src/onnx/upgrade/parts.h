// What the rules of upgrade() are written with.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "onnx/upgrade.h"

namespace octet::onnx {

// Takes an attribute out of the node; nothing when it is not there. UserError when it is of another type.
template <typename T>
std::optional<T> take(SourceNode& node, const std::string& key) {
  const auto it = node.attributes.find(key);
  if (it == node.attributes.end()) return std::nullopt;
  const T* value = std::get_if<T>(&it->second);
  if (!value) fail("attribute '", key, "' has an unexpected type");
  T out = *value;
  node.attributes.erase(it);
  return out;
}

ir::Tensor int_vector(const std::vector<int64_t>& values);

// An old attribute becomes input `index`.
void ints_to_input(SourceNode& node, const char* key, size_t index, UpgradeContext& context);
void float_to_input(SourceNode& node, const char* key, size_t index, UpgradeContext& context);

// A constant without elements: exporters write one for an optional input that is absent.
bool is_empty_constant(const std::string& value, UpgradeContext& context);
// UserError when the rank is unknown.
ir::Shape known_shape(const std::string& value, UpgradeContext& context);
// Input `index` of the node, a constant of integers. UserError, calling it `what`, when the network computes it.
std::vector<int64_t> constant_ints(const SourceNode& node, size_t index, const char* what, UpgradeContext& context);
// UserError naming the attributes that are left: the rule has taken those that it knows.
void require_no_attributes(const SourceNode& node);

// The target of a Reshape to these sizes, of which those that are kDynamic are not known: 0 among the `kept` leading
// axes, which stay what they are, and -1 behind them. UserError where more than one would have to be computed.
std::vector<int64_t> reshape_target(const ir::Shape& to, size_t kept);

// The nodes that take the place of one.
class Formula {
 public:
  // The arguments must outlive the formula.
  Formula(const SourceNode& node, UpgradeContext& context) : node_(node), context_(context) {}

  // Adds a node with one output; its name.
  std::string operator()(const std::string& op, std::vector<std::string> inputs, ir::Attributes attributes = {});
  // Constants. A number has the type float32; UserError where the node computes in another one.
  std::string number(const char* hint, float value);
  std::string ints(const char* hint, const std::vector<int64_t>& values);

  // Often needed nodes.
  std::string reduce(const char* op, const std::string& x, const std::vector<int64_t>& axes, bool keep = true);
  std::string reshape(const std::string& x, const std::vector<int64_t>& target);
  std::string slice(const std::string& x, int64_t axis, int64_t start, int64_t end, int64_t step = 1);
  // The value under another shape: computed now where it is a constant.
  std::string reshaped(const std::string& value, const std::vector<int64_t>& target);
  // A scale or an offset that is learned, under another shape: where it is a constant, it is a parameter there, too.
  std::string parameter(const std::string& value, const std::vector<int64_t>& target);

  // All nodes; the last one gets the name and the output of the node that they replace.
  std::vector<SourceNode> nodes();

 private:
  const SourceNode& node_;
  UpgradeContext& context_;
  std::vector<SourceNode> nodes_;
};

}  // namespace octet::onnx
