#include "models/net_builder.h"

#include <cmath>

#include "ir/infer.h"
#include "models/initialize.h"

namespace octet::models {

using ir::Attributes;
using ir::OpKind;
using ir::Tensor;
using ir::Value;

NetBuilder::NetBuilder(const ModelOptions& options, const Published& published, bool backbone)
    : options_(options), published_(published), backbone_(backbone) {
  graph_.name = options.arch;
  input_ = graph_.add_input(
      "input", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, options.input[0], options.input[1], options.input[2]}});
}

Value* NetBuilder::parameter(const std::string& name, ir::Shape shape, const std::vector<float>& values) {
  return graph_.add_constant(name, Tensor::of<float>(std::move(shape), values), true);
}

Value* NetBuilder::filled(const std::string& name, int64_t count, float value, bool trainable) {
  const std::vector<float> values(static_cast<size_t>(count), value);
  return graph_.add_constant(name, Tensor::of<float>({count}, values), trainable);
}

Value* NetBuilder::shared_scalar(const std::string& name, float value) {
  Value* found = graph_.find_value(name);
  return found ? found : graph_.add_constant(name, Tensor::scalar<float>(value));
}

Value* NetBuilder::add_node(OpKind kind, const std::string& name, std::vector<Value*> inputs, Attributes attributes,
                            const std::string& output_name) {
  ir::Node* node =
      graph_.add_node(kind, name, std::move(inputs), {output_name.empty() ? name : output_name}, std::move(attributes));
  ir::infer_node(*node);
  if (block_ >= 0) blocks_[name] = block_;
  return node->output();
}

Value* NetBuilder::conv(Value* x, const std::string& name, const ConvSpec& spec) {
  using Ints = std::vector<int64_t>;
  const int64_t k = spec.kernel, in = channels(x) / spec.groups;
  const int64_t pad = spec.padding == ConvSpec::Padding::kNone ? 0 : (k - 1) / 2;
  Ints pads = {pad, pad, pad, pad};
  if (spec.padding == ConvSpec::Padding::kTensorFlow && spec.stride == 2)
    for (size_t axis = 0; axis < 2; ++axis) pads[axis] -= (*x->type.shape)[axis + 2] % 2 == 0 ? 1 : 0;
  // As PyTorch counts fan out: all filters, whatever the groups.
  const double deviation = spec.deviation.value_or(std::sqrt(2.0 / static_cast<double>(spec.out * k * k)));
  const std::string weight = name + ".weight";
  std::vector<Value*> inputs = {x, parameter(weight, {spec.out, in, k, k},
                                             normal_values(spec.out * in * k * k, deviation, options_.seed, weight))};
  if (spec.bias || !uses_batch_norm()) inputs.push_back(filled(name + ".bias", spec.out, 0, true));
  return add_node(OpKind::kConv, name, std::move(inputs),
                  {{"kernel_shape", Ints{k, k}},
                   {"strides", Ints{spec.stride, spec.stride}},
                   {"pads", pads},
                   {"dilations", Ints{1, 1}},
                   {"group", spec.groups}});
}

Value* NetBuilder::batch_norm(Value* x, const std::string& name, float gamma) {
  if (!uses_batch_norm()) return x;
  const int64_t n = channels(x);
  return add_node(OpKind::kBatchNormalization, name,
                  {x, filled(name + ".weight", n, gamma, true), filled(name + ".bias", n, 0, true),
                   filled(name + ".running_mean", n, 0, false), filled(name + ".running_var", n, 1, false)},
                  {{"epsilon", tao() ? 1e-3f : published_.epsilon}, {"momentum", tao() ? 0.99f : 0.9f}});
}

Value* NetBuilder::activation(Value* x, const std::string& name, Activation published) {
  switch (options_.activation == Activation::kPublished ? published : options_.activation) {
    case Activation::kRelu:
      return add_node(OpKind::kRelu, name, {x});
    case Activation::kRelu6:
      return add_node(OpKind::kClip, name, {x, shared_scalar("relu6.min", 0), shared_scalar("relu6.max", 6)});
    case Activation::kLeakyRelu:
      return add_node(OpKind::kLeakyRelu, name, {x}, {{"alpha", 0.1f}});
    case Activation::kElu:
      return add_node(OpKind::kElu, name, {x});
    case Activation::kSilu:
      return multiply(x, sigmoid(x, name + ".sigmoid"), name);
    case Activation::kPublished:
      break;
  }
  OCTET_CHECK(false, "a layer without a published activation: " + name);
}

Value* NetBuilder::sigmoid(Value* x, const std::string& name) {
  return add_node(OpKind::kSigmoid, name, {x});
}

Value* NetBuilder::add(Value* a, Value* b, const std::string& name) {
  return add_node(OpKind::kAdd, name, {a, b});
}

Value* NetBuilder::multiply(Value* a, Value* b, const std::string& name) {
  return add_node(OpKind::kMul, name, {a, b});
}

Value* NetBuilder::concat(std::vector<Value*> parts, const std::string& name) {
  return add_node(OpKind::kConcat, name, std::move(parts), {{"axis", int64_t{1}}});
}

Value* NetBuilder::max_pool(Value* x, const std::string& name, const PoolSpec& spec) {
  using Ints = std::vector<int64_t>;
  Attributes attributes = {{"kernel_shape", Ints{spec.kernel, spec.kernel}},
                           {"strides", Ints{spec.stride, spec.stride}},
                           {"pads", Ints{spec.pad, spec.pad, spec.pad, spec.pad}}};
  if (spec.ceil) attributes["ceil_mode"] = int64_t{1};
  return add_node(OpKind::kMaxPool, name, {x}, std::move(attributes));
}

Value* NetBuilder::global_average(Value* x, const std::string& name) {
  return add_node(OpKind::kGlobalAveragePool, name, {x});
}

Value* NetBuilder::flatten(Value* x, const std::string& name, const std::string& output_name) {
  return add_node(OpKind::kFlatten, name, {x}, {{"axis", int64_t{1}}}, output_name);
}

Value* NetBuilder::dropout(Value* x, const std::string& name, double published) {
  const double probability = options_.dropout < 0 ? published : options_.dropout;
  if (probability == 0) return x;
  Value* ratio = graph_.add_constant(name + ".ratio", Tensor::scalar<float>(static_cast<float>(probability)));
  return add_node(OpKind::kDropout, name, {x, ratio});
}

Value* NetBuilder::linear(Value* x, const std::string& name, int64_t out, const LinearInit& init,
                          const std::string& output_name) {
  const int64_t in = channels(x);
  const std::string weight = name + ".weight", bias = name + ".bias";
  const double fan_in_bound = 1 / std::sqrt(static_cast<double>(in));
  const std::vector<float> values =
      init.deviation ? normal_values(out * in, *init.deviation, options_.seed, weight)
                     : uniform_values(out * in, init.uniform_bound.value_or(fan_in_bound), options_.seed, weight);
  const bool zero_bias = init.deviation || init.uniform_bound;
  Value* w = parameter(weight, {out, in}, values);
  Value* b = zero_bias ? filled(bias, out, 0, true)
                       : parameter(bias, {out}, uniform_values(out, fan_in_bound, options_.seed, bias));
  return add_node(OpKind::kGemm, name, {x, w, b}, {{"transB", int64_t{1}}}, output_name);
}

}  // namespace octet::models
