#include "onnx/upgrade/parts.h"

#include <algorithm>

namespace octet::onnx {

using ir::Shape;
using ir::Tensor;

namespace {

void to_input(SourceNode& node, const char* key, size_t index, Tensor value, UpgradeContext& context) {
  if (node.has_input(index)) fail("has both an attribute '", key, "' and the input that replaced it");
  if (node.inputs.size() <= index) node.inputs.resize(index + 1);
  node.inputs[index] = context.add_constant(node.outputs.at(0) + "_" + key, std::move(value));
}

// The same elements under a target of sizes, 0 and one -1; nothing where it does not fit.
std::optional<Tensor> with_target(const Tensor& tensor, const std::vector<int64_t>& target) {
  Shape shape = target;
  int64_t known = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) shape[i] = i < tensor.shape().size() ? tensor.shape()[i] : 0;
    if (shape[i] != -1) known *= shape[i];
  }
  for (int64_t& d : shape)
    if (d == -1) d = known == 0 ? 0 : tensor.size() / known;
  return ir::element_count(shape) == tensor.size() ? std::optional(tensor.with_shape(shape)) : std::nullopt;
}

}  // namespace

Tensor int_vector(const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

void ints_to_input(SourceNode& node, const char* key, size_t index, UpgradeContext& context) {
  if (const auto values = take<std::vector<int64_t>>(node, key))
    to_input(node, key, index, int_vector(*values), context);
}

void float_to_input(SourceNode& node, const char* key, size_t index, UpgradeContext& context) {
  if (const auto value = take<float>(node, key)) to_input(node, key, index, Tensor::scalar(*value), context);
}

bool is_empty_constant(const std::string& value, UpgradeContext& context) {
  const auto shape = context.shape(value);
  return shape && shape->size() == 1 && shape->front() == 0;
}

Shape known_shape(const std::string& value, UpgradeContext& context) {
  const auto shape = context.shape(value);
  if (!shape) fail("the rank of its input '", value, "' is unknown");
  return *shape;
}

std::vector<int64_t> constant_ints(const SourceNode& node, size_t index, const char* what, UpgradeContext& context) {
  if (!node.has_input(index)) fail("its input ", index, " (", what, ") is absent");
  const auto tensor = context.constant(node.inputs[index]);
  if (!tensor)
    fail("its ", what, " '", node.inputs[index],
         "' are computed by the network or from sizes that are dynamic; they should be constants");
  if (tensor->data_type() != ir::DataType::kInt64 && tensor->data_type() != ir::DataType::kInt32)
    fail("its ", what, " should be integers, not ", ir::data_type_name(tensor->data_type()));
  return tensor->to_ints();
}

void require_no_attributes(const SourceNode& node) {
  for (const auto& [key, value] : node.attributes) fail("attribute '", key, "' is not supported");
}

std::vector<int64_t> reshape_target(const Shape& to, size_t kept) {
  std::vector<int64_t> target = to;
  bool computed = false;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] != ir::kDynamic) continue;
    if (i < kept) {
      target[i] = 0;
    } else if (!computed) {
      target[i] = -1, computed = true;
    } else {
      fail("rearranges its elements as ", ir::shape_string(to),
           ", which needs all of these sizes but one to be known; export the model with fixed sizes");
    }
  }
  return target;
}

std::string Formula::operator()(const std::string& op, std::vector<std::string> inputs, ir::Attributes attributes) {
  nodes_.push_back({op,
                    context_.fresh_name(node_.name + "_" + op),
                    std::move(inputs),
                    {context_.fresh_name(node_.outputs.at(0) + "_" + op)},
                    std::move(attributes)});
  return nodes_.back().outputs[0];
}

std::string Formula::number(const char* hint, float value) {
  if (context_.data_type(node_.inputs.at(0)) != ir::DataType::kFloat32) fail("is supported for float32 only");
  return context_.add_constant(node_.outputs.at(0) + "_" + hint, Tensor::scalar(value));
}

std::string Formula::ints(const char* hint, const std::vector<int64_t>& values) {
  return context_.add_constant(node_.outputs.at(0) + "_" + hint, int_vector(values));
}

std::string Formula::reduce(const char* op, const std::string& x, const std::vector<int64_t>& axes, bool keep) {
  return (*this)(op, {x, ints("axes", axes)}, {{"keepdims", int64_t{keep}}});
}

std::string Formula::reshape(const std::string& x, const std::vector<int64_t>& target) {
  return (*this)("Reshape", {x, ints("shape", target)});
}

std::string Formula::slice(const std::string& x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  std::vector<std::string> inputs{x, ints("starts", {start}), ints("ends", {end}), ints("axes", {axis})};
  if (step != 1) inputs.push_back(ints("steps", {step}));
  return (*this)("Slice", std::move(inputs));
}

std::string Formula::reshaped(const std::string& value, const std::vector<int64_t>& target) {
  const auto constant = context_.constant(value);
  if (!constant) return reshape(value, target);
  const auto tensor = with_target(*constant, target);
  if (!tensor) fail("its input '", value, "' is ", ir::shape_string(constant->shape()), ", which does not fit");
  return context_.add_constant(value + "_reshaped", *tensor);
}

std::string Formula::parameter(const std::string& value, const std::vector<int64_t>& target) {
  const std::string name = reshaped(value, target);
  if (context_.constant(value)) context_.mark_parameter(name);
  return name;
}

std::vector<SourceNode> Formula::nodes() {
  OCTET_CHECK(!nodes_.empty(), node_.op);
  nodes_.back().name = node_.name;
  nodes_.back().outputs = {node_.outputs.at(0)};
  return std::move(nodes_);
}

}  // namespace octet::onnx
