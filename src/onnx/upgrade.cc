#include "onnx/upgrade.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <unordered_map>

#include "ir/axes.h"
#include "ir/data_type_codes.h"

namespace octet::onnx {
namespace {

using ir::normal_axis;
using ir::Shape;
using ir::Tensor;
using Nodes = std::vector<SourceNode>;

// Takes an attribute out of the node; nothing when it is not there.
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

Tensor int_vector(const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

void set_input(SourceNode& node, size_t index, const std::string& name) {
  if (node.inputs.size() <= index) node.inputs.resize(index + 1);
  node.inputs[index] = name;
}

// An old attribute of integers becomes input `index`.
void ints_to_input(SourceNode& node, const char* key, size_t index, UpgradeContext& context) {
  const auto values = take<std::vector<int64_t>>(node, key);
  if (!values) return;
  if (node.has_input(index)) fail("has both an attribute '", key, "' and the input that replaced it");
  set_input(node, index, context.add_constant(node.outputs.at(0) + "_" + key, int_vector(*values)));
}

void float_to_input(SourceNode& node, const char* key, size_t index, UpgradeContext& context) {
  const auto value = take<float>(node, key);
  if (!value) return;
  if (node.has_input(index)) fail("has both an attribute '", key, "' and the input that replaced it");
  set_input(node, index, context.add_constant(node.outputs.at(0) + "_" + key, Tensor::scalar(*value)));
}

Shape known_shape(const std::string& value, UpgradeContext& context) {
  const auto shape = context.shape(value);
  if (!shape) fail("the rank of its input '", value, "' is unknown");
  return *shape;
}

bool is_empty_constant(const std::string& name, UpgradeContext& context) {
  const auto shape = context.shape(name);
  return shape && shape->size() == 1 && shape->front() == 0;
}

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

// Opset 10 had two inputs and the coordinates of Upsample.
Nodes first_resize(SourceNode node) {
  if (node.inputs.size() != 2) fail("has ", node.inputs.size(), " inputs, expected x and scales as in opset 10");
  node.inputs = {node.inputs[0], "", node.inputs[1]};
  node.attributes["coordinate_transformation_mode"] = std::string("asymmetric");
  node.attributes["nearest_mode"] = std::string("floor");
  return {node};
}

Nodes resize(SourceNode node, int opset, UpgradeContext& context) {
  if (opset < 11) return first_resize(std::move(node));
  const auto mode_at = node.attributes.find("coordinate_transformation_mode");
  const std::string* transformation =
      mode_at == node.attributes.end() ? nullptr : std::get_if<std::string>(&mode_at->second);
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (node.has_input(i) && is_empty_constant(node.inputs[i], context)) node.inputs[i].clear();
  // Only tf_crop_and_resize reads the region of interest.
  if (node.has_input(1) && (!transformation || *transformation != "tf_crop_and_resize")) node.inputs[1].clear();
  if (transformation && *transformation == "tf_half_pixel_for_nn") {
    // floor((x + 0.5) / scale) = round_prefer_ceil((x + 0.5) / scale - 0.5): the same with half_pixel.
    const auto mode = take<std::string>(node, "mode").value_or("nearest");
    const auto nearest = take<std::string>(node, "nearest_mode").value_or("round_prefer_floor");
    if (mode != "nearest" || nearest != "floor")
      fail(
          "coordinate_transformation_mode tf_half_pixel_for_nn is supported only for mode nearest with nearest_mode "
          "floor, not ",
          mode, " with ", nearest);
    node.attributes["mode"] = mode;
    node.attributes["coordinate_transformation_mode"] = std::string("half_pixel");
    node.attributes["nearest_mode"] = std::string("round_prefer_ceil");
  }
  return {node};
}

Nodes upsample(SourceNode node, int, UpgradeContext& context) {
  std::string mode = take<std::string>(node, "mode").value_or("nearest");
  if (mode == "bilinear") mode = "linear";
  std::string scales = node.has_input(1) ? node.inputs[1] : std::string();
  if (const auto values = take<std::vector<float>>(node, "scales")) {
    const auto count = static_cast<int64_t>(values->size());
    scales = context.add_constant(node.outputs.at(0) + "_scales", Tensor::of<float>({count}, *values));
  }
  if (scales.empty()) fail("has no scales");
  node.op = "Resize";
  node.inputs = {node.inputs.at(0), "", scales};
  node.attributes["mode"] = mode;
  node.attributes["coordinate_transformation_mode"] = std::string("asymmetric");
  node.attributes["nearest_mode"] = std::string("floor");
  return {node};
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

Nodes sum(SourceNode node, int, UpgradeContext& context) {
  if (node.inputs.size() == 1) {
    node.op = "Identity";
    return {node};
  }
  Nodes out;
  std::string total = node.inputs.at(0);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const bool last = i + 1 == node.inputs.size();
    SourceNode add{"Add", node.name, {total, node.inputs[i]}, node.outputs, {}};
    if (!last) {
      add.name = context.fresh_name(node.name + "_add");
      add.outputs = {context.fresh_name(node.outputs.at(0) + "_sum")};
    }
    total = add.outputs.at(0);
    out.push_back(std::move(add));
  }
  return out;
}

// A chain of nodes that ends in the outputs of `node`.
class Chain {
 public:
  Chain(const SourceNode& node, UpgradeContext& context) : node_(node), context_(context) {}
  std::string add(const std::string& op, std::vector<std::string> inputs, bool last = false) {
    SourceNode next{op, node_.name, std::move(inputs), node_.outputs, {}};
    if (!last) {
      next.name = context_.fresh_name(node_.name + "_" + op);
      next.outputs = {context_.fresh_name(node_.outputs.at(0) + "_" + op)};
    }
    nodes_.push_back(std::move(next));
    return nodes_.back().outputs.at(0);
  }
  std::string scalar(const char* hint, float value) {
    if (context_.data_type(node_.inputs.at(0)) != ir::DataType::kFloat32) fail("is supported for float32 only");
    return context_.add_constant(node_.outputs.at(0) + "_" + hint, Tensor::scalar(value));
  }
  Nodes nodes() { return std::move(nodes_); }

 private:
  const SourceNode& node_;
  UpgradeContext& context_;
  Nodes nodes_;
};

// The approximation by tanh becomes the operators of its formula, x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715
// x^3))).
Nodes gelu(SourceNode node, int, UpgradeContext& context) {
  const std::string form = take<std::string>(node, "approximate").value_or("none");
  if (form == "none") return {std::move(node)};
  if (form != "tanh") fail("approximate=", form, " is not supported");
  const std::string x = node.inputs.at(0);
  Chain chain(node, context);
  const std::string cube = chain.add("Mul", {chain.add("Mul", {x, x}), x});
  const std::string bent = chain.add("Add", {x, chain.add("Mul", {cube, chain.scalar("cubic", 0.044715f)})});
  const std::string tanh = chain.add(
      "Tanh", {chain.add("Mul", {bent, chain.scalar("slope", std::sqrt(2 * std::numbers::inv_pi_v<float>))})});
  const std::string gate = chain.add("Add", {tanh, chain.scalar("one", 1)});
  chain.add("Mul", {chain.add("Mul", {x, gate}), chain.scalar("half", 0.5f)}, true);
  return chain.nodes();
}

Nodes reciprocal(SourceNode node, int, UpgradeContext& context) {
  if (context.constant(node.inputs.at(0))) return {node};  // folded
  Chain chain(node, context);
  chain.add("Div", {chain.scalar("one", 1), node.inputs[0]}, true);
  return chain.nodes();
}

// Gather of one position, or of neighboring ones, from an activation is a Slice.
Nodes gather(SourceNode node, int, UpgradeContext& context) {
  if (node.inputs.size() != 2 || context.constant(node.inputs[0])) return {node};
  const auto indices = context.constant(node.inputs[1]);
  const auto shape = context.shape(node.inputs[0]);
  if (!indices || !shape || indices->shape().size() > 1 || indices->size() == 0) return {node};
  const std::vector<int64_t> at = indices->to_ints();
  for (size_t i = 1; i < at.size(); ++i)
    if (at[i] != at[0] + static_cast<int64_t>(i)) return {node};
  if (at.front() < 0 && at.back() >= 0) return {node};
  const auto axis = static_cast<int64_t>(normal_axis(take<int64_t>(node, "axis").value_or(0), shape->size()));
  constexpr int64_t kFar = int64_t{1} << 40;
  if (at.front() < -kFar || at.back() > kFar) fail("an index is out of range");
  const int64_t size = (*shape)[static_cast<size_t>(axis)];
  if (size == ir::kDynamic) return {node};  // a Slice would clamp an index that a Gather refuses
  if (at.front() < -size || at.back() >= size) fail("index ", at.front(), " is out of range for axis ", axis);
  const std::string& out = node.outputs.at(0);
  const int64_t end = at.back() == -1 ? std::numeric_limits<int64_t>::max() : at.back() + 1;
  SourceNode cut{"Slice", node.name, {node.inputs[0]}, node.outputs, {}};
  cut.inputs.push_back(context.add_constant(out + "_starts", int_vector({at.front()})));
  cut.inputs.push_back(context.add_constant(out + "_ends", int_vector({end})));
  const std::string axes = context.add_constant(out + "_axes", int_vector({axis}));
  cut.inputs.push_back(axes);
  if (!indices->shape().empty()) return {cut};
  cut.name = context.fresh_name(node.name + "_slice");
  cut.outputs = {context.fresh_name(out + "_slice")};
  return {cut, SourceNode{"Squeeze", node.name, {cut.outputs[0], axes}, node.outputs, {}}};
}

Nodes cast_like(SourceNode node, int, UpgradeContext& context) {
  if (node.inputs.size() != 2) fail("has ", node.inputs.size(), " inputs, expected 2");
  const ir::DataType type = context.data_type(node.inputs[1]);
  return {
      SourceNode{"Cast", node.name, {node.inputs[0]}, node.outputs, {{"to", int64_t{ir::data_type_to_onnx(type)}}}}};
}

using Rule = Nodes (*)(SourceNode, int, UpgradeContext&);

const std::unordered_map<std::string, Rule>& rules() {
  static const std::unordered_map<std::string, Rule> table = {
      {"Clip", clip},
      {"Dropout", dropout},
      {"Squeeze", axes_as_input},
      {"Unsqueeze", axes_as_input},
      {"ReduceMean", axes_as_input},
      {"ReduceSum", axes_as_input},
      {"ReduceMax", axes_as_input},
      {"ReduceMin", axes_as_input},
      {"ReduceProd", axes_as_input},
      {"Split", split},
      {"Softmax", softmax},
      {"LogSoftmax", softmax},
      {"Resize", resize},
      {"Upsample", upsample},
      {"BatchNormalization", batch_normalization},
      {"Pad", pad},
      {"Slice", slice},
      {"Sum", sum},
      {"Gelu", gelu},
      {"Reciprocal", reciprocal},
      {"Gather", gather},
      {"CastLike", cast_like},
  };
  return table;
}

}  // namespace

bool is_rewritten(const std::string& op) {
  return rules().count(op) > 0;
}

std::vector<SourceNode> upgrade(SourceNode node, int opset, UpgradeContext& context) {
  const auto it = rules().find(node.op);
  if (it == rules().end()) return {std::move(node)};
  if (node.outputs.empty()) fail("has no outputs");
  if (node.inputs.empty() || node.inputs[0].empty()) fail("has no input");
  return it->second(std::move(node), opset, context);
}

}  // namespace octet::onnx
