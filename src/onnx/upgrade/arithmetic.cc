#include "onnx/upgrade/parts.h"
#include "onnx/upgrade/rules.h"

namespace octet::onnx {
namespace {

// The sum of all inputs, from the first to the last.
std::string total(const SourceNode& node, Formula& f) {
  std::string sum = node.inputs[0];
  for (size_t i = 1; i < node.inputs.size(); ++i) sum = f("Add", {sum, node.inputs[i]});
  return sum;
}

Nodes sum(SourceNode node, int, UpgradeContext& context) {
  Formula f(node, context);
  if (node.inputs.size() == 1)
    f("Identity", {node.inputs[0]});
  else
    total(node, f);
  return f.nodes();
}

Nodes mean(SourceNode node, int, UpgradeContext& context) {
  Formula f(node, context);
  if (node.inputs.size() == 1)
    f("Identity", {node.inputs[0]});
  else
    f("Div", {total(node, f), f.number("count", static_cast<float>(node.inputs.size()))});
  return f.nodes();
}

Nodes reciprocal(SourceNode node, int, UpgradeContext& context) {
  if (context.constant(node.inputs[0])) return {node};  // folded
  Formula f(node, context);
  f("Div", {f.number("one", 1), node.inputs[0]});
  return f.nodes();
}

// (e^x + e^-x) / 2.
Nodes cosh(SourceNode node, int, UpgradeContext& context) {
  Formula f(node, context);
  f("Mul", {f("Add", {f("Exp", {node.inputs[0]}), f("Exp", {f("Neg", {node.inputs[0]})})}), f.number("half", 0.5f)});
  return f.nodes();
}

}  // namespace

std::vector<UpgradeRow> arithmetic_rules() {
  return {{"Sum", sum}, {"Mean", mean}, {"Reciprocal", reciprocal}, {"Cosh", cosh}};
}

}  // namespace octet::onnx
