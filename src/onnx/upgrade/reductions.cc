// Reductions and poolings that are a sum, mean or maximum between two functions of numbers.
#include <algorithm>
#include <limits>

#include "ir/axes.h"
#include "onnx/upgrade/parts.h"
#include "onnx/upgrade/rules.h"

namespace octet::onnx {
namespace {

// The same node with another operator and input: axes and attributes stay.
std::string reduced(Formula& f, const SourceNode& node, const char* op, const std::string& x) {
  std::vector<std::string> inputs = node.inputs;
  inputs[0] = x;
  return f(op, inputs, node.attributes);
}

Nodes reduce_l1(SourceNode node, int, UpgradeContext& context) {
  ints_to_input(node, "axes", 1, context);
  Formula f(node, context);
  reduced(f, node, "ReduceSum", f("Abs", {node.inputs[0]}));
  return f.nodes();
}

Nodes reduce_sum_square(SourceNode node, int, UpgradeContext& context) {
  ints_to_input(node, "axes", 1, context);
  Formula f(node, context);
  reduced(f, node, "ReduceSum", f("Mul", {node.inputs[0], node.inputs[0]}));
  return f.nodes();
}

Nodes reduce_l2(SourceNode node, int, UpgradeContext& context) {
  ints_to_input(node, "axes", 1, context);
  Formula f(node, context);
  f("Sqrt", {reduced(f, node, "ReduceSum", f("Mul", {node.inputs[0], node.inputs[0]}))});
  return f.nodes();
}

Nodes reduce_log_sum(SourceNode node, int, UpgradeContext& context) {
  ints_to_input(node, "axes", 1, context);
  Formula f(node, context);
  f("Log", {reduced(f, node, "ReduceSum", node.inputs[0])});
  return f.nodes();
}

// max + log(sum(exp(x - max))), which overflows nowhere. The maximum is finite here, so that infinities stay what they
// are.
Nodes reduce_log_sum_exp(SourceNode node, int, UpgradeContext& context) {
  ints_to_input(node, "axes", 1, context);
  constexpr float kLargest = std::numeric_limits<float>::max();
  Formula f(node, context);
  SourceNode keeping = node;
  keeping.attributes["keepdims"] = int64_t{1};
  const std::string lo = f.number("lowest", -kLargest), hi = f.number("largest", kLargest);
  const std::string peak = f("Clip", {reduced(f, keeping, "ReduceMax", node.inputs[0]), lo, hi});
  const std::string sum = reduced(f, node, "ReduceSum", f("Exp", {f("Sub", {node.inputs[0], peak})}));
  f("Add", {f("Log", {sum}), f("Clip", {reduced(f, node, "ReduceMax", node.inputs[0]), lo, hi})});
  return f.nodes();
}

Nodes reduce_min(SourceNode node, int, UpgradeContext& context) {
  ints_to_input(node, "axes", 1, context);
  if (context.constant(node.inputs[0])) return {node};  // folded
  Formula f(node, context);
  f("Neg", {reduced(f, node, "ReduceMax", f("Neg", {node.inputs[0]}))});
  return f.nodes();
}

// |x|^p, and its root.
std::string power(Formula& f, const std::string& x, int64_t p) {
  if (p == 1) return f("Abs", {x});
  if (p == 2) return f("Mul", {x, x});
  return f("Pow", {f("Abs", {x}), f.number("p", static_cast<float>(p))});
}

void root(Formula& f, const std::string& x, int64_t p) {
  if (p == 2)
    f("Sqrt", {x});
  else if (p != 1)
    f("Pow", {x, f.number("inverse", 1 / static_cast<float>(p))});
}

int64_t take_p(SourceNode& node) {
  const int64_t p = take<int64_t>(node, "p").value_or(2);
  if (p < 1) fail("p is ", p, ", expected 1 or more");
  return p;
}

Nodes global_lp_pool(SourceNode node, int, UpgradeContext& context) {
  const int64_t p = take_p(node);
  const size_t rank = known_shape(node.inputs[0], context).size();
  require_no_attributes(node);
  if (rank < 3) fail("its input has ", rank, " axes, expected images, channels and sizes");
  Formula f(node, context);
  std::vector<int64_t> axes = ir::all_axes(rank);
  axes.erase(axes.begin(), axes.begin() + 2);
  root(f, f.reduce("ReduceSum", power(f, node.inputs[0], p), axes), p);
  return f.nodes();
}

// The sum of a window is the mean over all its places, padding included, times their number.
Nodes lp_pool(SourceNode node, int, UpgradeContext& context) {
  const int64_t p = take_p(node);
  if (take<int64_t>(node, "ceil_mode").value_or(0) != 0)
    fail("ceil_mode=1 is not supported; pad the input and leave it out");
  const auto it = node.attributes.find("kernel_shape");
  const auto* kernel = it == node.attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&it->second);
  if (!kernel) fail("has no kernel_shape");
  float places = 1;
  for (const int64_t k : *kernel) places *= static_cast<float>(k);
  node.attributes["count_include_pad"] = int64_t{1};
  Formula f(node, context);
  const std::string means = f("AveragePool", {power(f, node.inputs[0], p)}, node.attributes);
  root(f, f("Mul", {means, f.number("places", places)}), p);
  return f.nodes();
}

}  // namespace

std::vector<UpgradeRow> reduction_rules() {
  return {{"ReduceL1", reduce_l1},
          {"ReduceL2", reduce_l2},
          {"ReduceSumSquare", reduce_sum_square},
          {"ReduceLogSum", reduce_log_sum},
          {"ReduceLogSumExp", reduce_log_sum_exp},
          {"ReduceMin", reduce_min},
          {"GlobalLpPool", global_lp_pool},
          {"LpPool", lp_pool}};
}

}  // namespace octet::onnx
