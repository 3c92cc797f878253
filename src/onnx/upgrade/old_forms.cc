#include <algorithm>
#include <set>

#include "ir/axes.h"
#include "ir/data_type_codes.h"
#include "onnx/upgrade/parts.h"
#include "onnx/upgrade/rules.h"

namespace octet::onnx {
namespace {

using ir::normal_axis;
using ir::Shape;
using ir::Tensor;

Nodes clip(SourceNode node, int, UpgradeContext& context) {
  float_to_input(node, "min", 1, context);
  float_to_input(node, "max", 2, context);
  return {node};
}

Nodes dropout(SourceNode node, int, UpgradeContext& context) {
  float_to_input(node, "ratio", 1, context);
  return {node};
}

Nodes axes_as_input(SourceNode node, int, UpgradeContext& context) {
  ints_to_input(node, "axes", 1, context);
  return {node};
}

Nodes split(SourceNode node, int opset, UpgradeContext& context) {
  ints_to_input(node, "split", 1, context);
  if (opset < 18 && !node.has_input(1)) node.attributes["num_outputs"] = static_cast<int64_t>(node.outputs.size());
  return {node};
}

// Until opset 12 Softmax flattened its input to two dimensions at `axis`.
Nodes softmax(SourceNode node, int opset, UpgradeContext& context) {
  if (opset >= 13) return {node};
  const std::string x = node.inputs.at(0);
  const Shape shape = known_shape(x, context);
  const auto axis =
      static_cast<int64_t>(normal_axis(take<int64_t>(node, "axis").value_or(1), std::max<size_t>(shape.size(), 1)));
  const auto after = shape.begin() + std::min<int64_t>(axis + 1, static_cast<int64_t>(shape.size()));
  if (std::all_of(after, shape.end(), [](int64_t d) { return d == 1; })) {
    node.attributes["axis"] = axis;
    return {node};
  }
  if (std::count(shape.begin(), shape.end(), ir::kDynamic) > 1)
    fail("normalizes over all axes from ", axis, " on, as before opset 13, which needs all sizes but one of ",
         ir::shape_string(shape), " to be known; export the model with opset 13 or newer");
  Shape back = shape;  // the one dynamic size stays -1, which Reshape computes
  SourceNode flatten{"Flatten", context.fresh_name(node.name + "_flatten"), {x}, {}, {{"axis", axis}}};
  flatten.outputs = {context.fresh_name(x + "_flat")};
  SourceNode restore{"Reshape", node.name, {}, node.outputs, {}};
  node.name = context.fresh_name(node.name + "_flat");
  node.inputs = flatten.outputs;
  node.outputs = {context.fresh_name(restore.outputs.at(0) + "_flat")};
  node.attributes["axis"] = int64_t{1};
  restore.inputs = {node.outputs[0], context.add_constant(restore.outputs.at(0) + "_shape", int_vector(back))};
  return {flatten, node, restore};
}

Nodes batch_normalization(SourceNode node, int, UpgradeContext&) {
  if (take<int64_t>(node, "spatial").value_or(1) != 1) fail("spatial=0 is not supported");
  return {node};
}

// Normal form: one pair of pads for every axis, no axes input.
Nodes pad(SourceNode node, int, UpgradeContext& context) {
  ints_to_input(node, "pads", 1, context);
  float_to_input(node, "value", 2, context);
  if (node.has_input(2) && is_empty_constant(node.inputs[2], context)) node.inputs[2].clear();
  if (node.has_input(3)) {
    const auto axes = context.constant(node.inputs[3]), pads = context.constant(node.inputs.at(1));
    if (!axes || !pads) fail("axes and pads should be constants");
    const std::vector<int64_t> which = axes->to_ints(), amounts = pads->to_ints();
    const size_t rank = known_shape(node.inputs[0], context).size();
    if (amounts.size() != 2 * which.size()) fail(amounts.size(), " pads for ", which.size(), " axes");
    std::vector<int64_t> full(2 * rank, 0);
    std::set<size_t> seen;
    for (size_t i = 0; i < which.size(); ++i) {
      const size_t axis = normal_axis(which[i], rank);
      if (!seen.insert(axis).second) fail("axis ", axis, " is padded twice");
      full[axis] = amounts[i];
      full[rank + axis] = amounts[which.size() + i];
    }
    node.inputs[1] = context.add_constant(node.outputs.at(0) + "_pads", int_vector(full));
    node.inputs[3].clear();
  }
  return {node};
}

Nodes slice(SourceNode node, int, UpgradeContext& context) {
  ints_to_input(node, "starts", 1, context);
  ints_to_input(node, "ends", 2, context);
  ints_to_input(node, "axes", 3, context);
  return {node};
}

Nodes cast_like(SourceNode node, int, UpgradeContext& context) {
  if (node.inputs.size() != 2) fail("has ", node.inputs.size(), " inputs, expected 2");
  const ir::DataType type = context.data_type(node.inputs[1]);
  return {
      SourceNode{"Cast", node.name, {node.inputs[0]}, node.outputs, {{"to", int64_t{ir::data_type_to_onnx(type)}}}}};
}

}  // namespace

std::vector<UpgradeRow> old_form_rules() {
  return {{"Clip", clip},
          {"Dropout", dropout},
          {"Squeeze", axes_as_input},
          {"Unsqueeze", axes_as_input},
          {"ReduceMean", axes_as_input},
          {"ReduceSum", axes_as_input},
          {"ReduceMax", axes_as_input},
          {"ReduceProd", axes_as_input},
          {"Split", split},
          {"Softmax", softmax},
          {"LogSoftmax", softmax},
          {"BatchNormalization", batch_normalization},
          {"Pad", pad},
          {"Slice", slice},
          {"CastLike", cast_like}};
}

}  // namespace octet::onnx
