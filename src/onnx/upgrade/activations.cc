#include <cmath>
#include <numbers>

#include "onnx/upgrade/parts.h"
#include "onnx/upgrade/rules.h"

namespace octet::onnx {
namespace {

// The approximation by tanh becomes the operators of its formula, x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715
// x^3))).
Nodes gelu(SourceNode node, int, UpgradeContext& context) {
  const std::string form = take<std::string>(node, "approximate").value_or("none");
  if (form == "none") return {std::move(node)};
  if (form != "tanh") fail("approximate=", form, " is not supported");
  const std::string x = node.inputs[0];
  Formula f(node, context);
  const std::string cube = f("Mul", {f("Mul", {x, x}), x});
  const std::string bent = f("Add", {x, f("Mul", {cube, f.number("cubic", 0.044715f)})});
  const std::string slope = f.number("slope", std::sqrt(2 * std::numbers::inv_pi_v<float>));
  const std::string gate = f("Add", {f("Tanh", {f("Mul", {bent, slope})}), f.number("one", 1)});
  f("Mul", {f("Mul", {x, gate}), f.number("half", 0.5f)});
  return f.nodes();
}

// x * sigmoid(alpha * x).
Nodes swish(SourceNode node, int, UpgradeContext& context) {
  const float alpha = take<float>(node, "alpha").value_or(1);
  const std::string x = node.inputs[0];
  Formula f(node, context);
  f("Mul", {x, f("Sigmoid", {alpha == 1 ? x : f("Mul", {x, f.number("alpha", alpha)})})});
  return f.nodes();
}

// alpha * elu(x / alpha), which is max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).
Nodes celu(SourceNode node, int, UpgradeContext& context) {
  const float alpha = take<float>(node, "alpha").value_or(1);
  if (!(alpha > 0)) fail("alpha is ", alpha, ", expected a positive number");
  Formula f(node, context);
  if (alpha == 1) {
    f("Elu", {node.inputs[0]});
  } else {
    const std::string a = f.number("alpha", alpha);
    f("Mul", {f("Elu", {f("Div", {node.inputs[0], a})}), a});
  }
  return f.nodes();
}

// gamma * elu(x).
Nodes selu(SourceNode node, int, UpgradeContext& context) {
  const float alpha = take<float>(node, "alpha").value_or(1.67326319217681884765625f);
  const float gamma = take<float>(node, "gamma").value_or(1.05070102214813232421875f);
  Formula f(node, context);
  f("Mul", {f("Elu", {node.inputs[0]}, {{"alpha", alpha}}), f.number("gamma", gamma)});
  return f.nodes();
}

// x / (1 + |x|).
Nodes softsign(SourceNode node, int, UpgradeContext& context) {
  Formula f(node, context);
  f("Div", {node.inputs[0], f("Add", {f("Abs", {node.inputs[0]}), f.number("one", 1)})});
  return f.nodes();
}

// Toward zero by `bias` outside of [-lambd, lambd], and zero inside. With equal numbers (soft shrinking, the one that
// networks have) it is x - clip(x, -lambd, lambd).
Nodes shrink(SourceNode node, int, UpgradeContext& context) {
  const float lambd = take<float>(node, "lambd").value_or(0.5f), bias = take<float>(node, "bias").value_or(0);
  if (!(lambd >= 0) || bias != lambd)
    fail("lambd is ", lambd, " and bias ", bias, "; supported are equal numbers that are not negative");
  Formula f(node, context);
  f("Sub", {node.inputs[0], f("Clip", {node.inputs[0], f.number("min", -lambd), f.number("max", lambd)})});
  return f.nodes();
}

}  // namespace

std::vector<UpgradeRow> activation_rules() {
  return {{"Gelu", gelu}, {"Swish", swish}, {"Celu", celu}, {"Selu", selu}, {"Softsign", softsign}, {"Shrink", shrink}};
}

}  // namespace octet::onnx
