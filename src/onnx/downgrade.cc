#include "onnx/downgrade.h"

#include <algorithm>
#include <numbers>

#include "ir/axes.h"

namespace octet::onnx {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Tensor;

// Attributes that came after opset 13, the value that older opsets imply, and since when they exist.
struct LaterAttribute {
  const char* op;
  const char* name;
  int since;
  std::variant<int64_t, std::string, std::vector<int64_t>> implied;
};

const std::vector<LaterAttribute>& later_attributes() {
  static const std::vector<LaterAttribute> table = {
      {"Reshape", "allowzero", 14, int64_t{0}},
      {"BatchNormalization", "training_mode", 14, int64_t{0}},
      {"Resize", "antialias", 18, int64_t{0}},
      {"Resize", "keep_aspect_ratio_policy", 18, std::string("stretch")},
      {"Resize", "axes", 18, std::vector<int64_t>()},
      {"Cast", "saturate", 19, int64_t{1}},
      {"QuantizeLinear", "saturate", 19, int64_t{1}},
      {"QuantizeLinear", "block_size", 21, int64_t{0}},
      {"QuantizeLinear", "output_dtype", 21, int64_t{0}},
      {"DequantizeLinear", "block_size", 21, int64_t{0}},
  };
  return table;
}

std::string text_of(const Node& node) {
  return str("node '", node.name, "' (", node.info().name, ")");
}

[[noreturn]] void inexpressible(const Node& node, int opset, const std::string& what) {
  fail(text_of(node), ": ", what, " cannot be written in opset ", opset, "; export with a newer opset (19 to 21)");
}

bool is_implied(const ir::Attribute& attribute, const LaterAttribute& later) {
  return std::visit(
      [&](const auto& implied) {
        const auto* value = std::get_if<std::decay_t<decltype(implied)>>(&attribute);
        return value && *value == implied;
      },
      later.implied);
}

// allowzero of a Reshape means nothing for a target without zeros.
bool has_no_zero(const Node& node, const std::string& attribute) {
  if (attribute != "allowzero" || !node.has_input(1) || !node.input(1)->is_constant()) return false;
  const std::vector<int64_t> target = node.input(1)->constant->to_ints();
  return std::find(target.begin(), target.end(), 0) == target.end();
}

void drop_later_attributes(SourceNode& out, const Node& node, int opset) {
  for (const LaterAttribute& later : later_attributes()) {
    if (out.op != later.op || opset >= later.since) continue;
    const auto it = out.attributes.find(later.name);
    if (it == out.attributes.end()) continue;
    if (!is_implied(it->second, later) && !has_no_zero(node, later.name))
      inexpressible(node, opset, str("attribute '", later.name, "'"));
    out.attributes.erase(it);
  }
  if (out.op == "AveragePool" && opset < 19 && out.attributes.count("dilations")) {
    const auto dilations = node.get_ints("dilations");
    if (std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; }))
      inexpressible(node, opset, "attribute 'dilations'");
    out.attributes.erase("dilations");
  }
  if (out.op == "Resize" && opset < 19 && node.get_string("coordinate_transformation_mode") == "half_pixel_symmetric")
    inexpressible(node, opset, "half_pixel_symmetric");
  if (out.op == "Pad" && opset < 19 && node.get_string("mode") == "wrap") inexpressible(node, opset, "mode wrap");
}

// Axes are an attribute before `input_since`, an input from then on; the graph may hold either.
void place_axes(SourceNode& out, const Node& node, int input_since, const DowngradeContext& context) {
  const bool as_input = context.opset >= input_since;
  if (as_input && out.attributes.count("axes")) {
    const std::vector<int64_t> axes = node.get_ints("axes");
    out.attributes.erase("axes");
    out.inputs.resize(2);
    out.inputs[1] =
        context.add_constant(node.name + "_axes", Tensor::of<int64_t>({static_cast<int64_t>(axes.size())}, axes));
  } else if (!as_input) {
    const bool noop = node.get_int("noop_with_empty_axes") != 0;
    std::vector<int64_t> axes = node.get_ints("axes");
    if (node.has_input(1)) {
      if (!node.input(1)->is_constant()) inexpressible(node, context.opset, "a computed list of axes");
      axes = node.input(1)->constant->to_ints();
    }
    if (noop && axes.empty()) inexpressible(node, context.opset, "noop_with_empty_axes");
    out.attributes.erase("noop_with_empty_axes");
    out.inputs.resize(1);
    if (!axes.empty()) out.attributes["axes"] = axes;
  }
}

void place_split(SourceNode& out, const Node& node, const DowngradeContext& context) {
  const bool stated = out.inputs.size() > 1 && !out.inputs[1].empty();
  if (context.opset >= 18) {
    if (!stated) out.attributes["num_outputs"] = static_cast<int64_t>(node.outputs.size());
    return;
  }
  out.attributes.erase("num_outputs");
  if (stated) return;
  // Older opsets split into equal parts only; write the sizes down, which is right in either case.
  if (!node.input(0)->type.shape) return;
  const size_t axis = ir::normal_axis(node, node.get_int("axis"), node.input(0)->type.shape->size());
  std::vector<int64_t> sizes;
  for (const ir::Value* part : node.outputs) {
    const int64_t size = part && part->type.shape ? (*part->type.shape)[axis] : ir::kDynamic;
    if (size == ir::kDynamic) return;
    sizes.push_back(size);
  }
  out.inputs.resize(2);
  out.inputs[1] =
      context.add_constant(node.name + "_split", Tensor::of<int64_t>({static_cast<int64_t>(sizes.size())}, sizes));
}

// Pads of all axes instead of those of some.
void place_pads(SourceNode& out, const Node& node, const DowngradeContext& context) {
  if (context.opset >= 18 || !node.has_input(3)) return;
  if (!node.input(3)->is_constant() || !node.input(1)->is_constant() || !node.input(0)->type.shape)
    inexpressible(node, context.opset, "a computed list of axes");
  const auto axes = node.input(3)->constant->to_ints(), pads = node.input(1)->constant->to_ints();
  const size_t rank = node.input(0)->type.shape->size();
  std::vector<int64_t> full(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i] < 0 ? axes[i] + static_cast<int64_t>(rank) : axes[i]);
    full.at(axis) = pads.at(i);
    full.at(rank + axis) = pads.at(axes.size() + i);
  }
  out.inputs[1] =
      context.add_constant(node.name + "_pads", Tensor::of<int64_t>({static_cast<int64_t>(full.size())}, full));
  out.inputs.resize(out.inputs[2].empty() ? 2 : 3);
}

// x * HardSigmoid(x; 1/6, 1/2), which is how ONNX defines HardSwish.
std::vector<SourceNode> hard_swish(SourceNode out, const DowngradeContext& context) {
  SourceNode gate{"HardSigmoid", context.fresh_name(out.name + "_gate"), out.inputs, {}, {}};
  gate.attributes = {{"alpha", 1.0f / 6.0f}, {"beta", 0.5f}};
  gate.outputs = {context.fresh_name(out.outputs[0] + "_gate")};
  out.op = "Mul";
  out.inputs.push_back(gate.outputs[0]);
  return {gate, out};
}

// One step of a combination; its result.
std::string step(std::vector<SourceNode>& nodes, const SourceNode& whole, const DowngradeContext& context,
                 const std::string& op, std::vector<std::string> inputs) {
  const std::string name = context.fresh_name(whole.outputs[0] + "_" + op);
  nodes.push_back({op, context.fresh_name(whole.name + "_" + op), std::move(inputs), {name}, {}});
  return name;
}

// x / 2 * (1 + erf(x / sqrt 2)).
std::vector<SourceNode> gelu(SourceNode out, const DowngradeContext& context) {
  const auto number = [&](const char* hint, float value) {
    return context.add_constant(out.name + hint, Tensor::scalar(value));
  };
  std::vector<SourceNode> nodes;
  const std::string x = out.inputs[0];
  std::string y = step(nodes, out, context, "Div", {x, number("_sqrt2", std::numbers::sqrt2_v<float>)});
  y = step(nodes, out, context, "Erf", {y});
  y = step(nodes, out, context, "Add", {y, number("_one", 1)});
  y = step(nodes, out, context, "Mul", {x, y});
  nodes.push_back({"Mul", out.name, {y, number("_half", 0.5f)}, out.outputs, {}});
  return nodes;
}

// x * tanh(softplus(x)).
std::vector<SourceNode> mish(SourceNode out, const DowngradeContext& context) {
  std::vector<SourceNode> nodes;
  const std::string x = out.inputs[0], softplus = step(nodes, out, context, "Softplus", {x});
  nodes.push_back({"Mul", out.name, {x, step(nodes, out, context, "Tanh", {softplus})}, out.outputs, {}});
  return nodes;
}

// (x - mean) / sqrt(variance + epsilon) * scale + shift.
std::vector<SourceNode> layer_norm(SourceNode out, const Node& node, const DowngradeContext& context) {
  if (out.outputs.size() > 1) inexpressible(node, context.opset, "an output of means or deviations");
  if (!node.input(0)->type.shape) inexpressible(node, context.opset, "an input of unknown rank");
  const auto rank = static_cast<int64_t>(node.input(0)->type.shape->size());
  std::vector<int64_t> axes;
  for (auto i = static_cast<int64_t>(ir::normal_axis(node, node.get_int("axis"), static_cast<size_t>(rank))); i < rank;
       ++i)
    axes.push_back(i);
  std::vector<SourceNode> nodes;
  const auto mean = [&](const std::string& of) {
    std::string y = step(nodes, out, context, "ReduceMean", {of});
    nodes.back().attributes = {{"axes", axes}};
    return y;
  };
  const std::string x = out.inputs[0], centered = step(nodes, out, context, "Sub", {x, mean(x)});
  std::string y = mean(step(nodes, out, context, "Mul", {centered, centered}));
  y = step(nodes, out, context, "Add",
           {y, context.add_constant(out.name + "_epsilon", Tensor::scalar(node.get_float("epsilon")))});
  y = step(nodes, out, context, "Sqrt", {y});
  y = step(nodes, out, context, "Div", {centered, y});
  const bool shifted = out.inputs.size() > 2 && !out.inputs[2].empty();
  if (shifted) {
    y = step(nodes, out, context, "Mul", {y, out.inputs[1]});
    nodes.push_back({"Add", out.name, {y, out.inputs[2]}, out.outputs, {}});
  } else {
    nodes.push_back({"Mul", out.name, {y, out.inputs[1]}, out.outputs, {}});
  }
  return nodes;
}

}  // namespace

std::vector<SourceNode> downgrade(const Node& node, const DowngradeContext& context) {
  SourceNode out{node.info().name, node.name, {}, {}, node.attributes};
  for (const ir::Value* v : node.inputs) out.inputs.push_back(v ? v->name : "");
  for (const ir::Value* v : node.outputs) out.outputs.push_back(v ? v->name : "");
  if (node.kind == OpKind::kReduceMean || node.kind == OpKind::kReduceMax) place_axes(out, node, 18, context);
  if (node.kind == OpKind::kReduceSum) place_axes(out, node, 13, context);
  if (node.kind == OpKind::kSplit) place_split(out, node, context);
  if (node.kind == OpKind::kPad) place_pads(out, node, context);
  drop_later_attributes(out, node, context.opset);
  while (!out.inputs.empty() && out.inputs.back().empty()) out.inputs.pop_back();
  while (!out.outputs.empty() && out.outputs.back().empty()) out.outputs.pop_back();
  if (node.kind == OpKind::kHardSwish && context.opset < 14) return hard_swish(std::move(out), context);
  if (node.kind == OpKind::kGelu && context.opset < 20) return gelu(std::move(out), context);
  if (node.kind == OpKind::kMish && context.opset < 18) return mish(std::move(out), context);
  if (node.kind == OpKind::kLayerNormalization && context.opset < 17) return layer_norm(std::move(out), node, context);
  return {std::move(out)};
}

}  // namespace octet::onnx
