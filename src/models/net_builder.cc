#include "models/net_builder.h"

#include <algorithm>
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

std::vector<float> NetBuilder::normal(const std::string& name, int64_t count, double deviation) const {
  return options_.draw_weights ? normal_values(count, deviation, options_.seed, name)
                               : std::vector<float>(static_cast<size_t>(count));
}

std::vector<float> NetBuilder::uniform(const std::string& name, int64_t count, double bound) const {
  return options_.draw_weights ? uniform_values(count, bound, options_.seed, name)
                               : std::vector<float>(static_cast<size_t>(count));
}

Value* NetBuilder::ints(const std::string& name, const std::vector<int64_t>& values) {
  return graph_.add_constant(name, Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
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
  const int64_t down = spec.kernel, across = spec.width > 0 ? spec.width : spec.kernel;
  const int64_t in = channels(x) / spec.groups;
  Ints pads = {(down - 1) / 2, (across - 1) / 2, (down - 1) / 2, (across - 1) / 2};
  if (spec.padding == ConvSpec::Padding::kNone) pads = {0, 0, 0, 0};
  if (spec.padding == ConvSpec::Padding::kTensorFlow && spec.stride == 2)
    for (size_t axis = 0; axis < 2; ++axis) pads[axis] -= (*x->type.shape)[axis + 2] % 2 == 0 ? 1 : 0;
  // As PyTorch counts fan out: all filters, whatever the groups.
  const double deviation = spec.deviation.value_or(std::sqrt(2.0 / static_cast<double>(spec.out * down * across)));
  const std::string weight = name + ".weight";
  const ir::Shape shape = {spec.out, in, down, across};
  std::vector<Value*> inputs = {x, parameter(weight, shape, normal(weight, ir::element_count(shape), deviation))};
  if (spec.bias || !uses_batch_norm()) inputs.push_back(filled(name + ".bias", spec.out, 0, true));
  return add_node(OpKind::kConv, name, std::move(inputs),
                  {{"kernel_shape", Ints{down, across}},
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
                  {{"epsilon", epsilon()}, {"momentum", tao() ? 0.99f : published_.momentum}});
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
    case Activation::kGelu:
      return add_node(OpKind::kGelu, name, {x});
    case Activation::kHardSwish:
      return add_node(OpKind::kHardSwish, name, {x});
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

Value* NetBuilder::hard_sigmoid(Value* x, const std::string& name) {
  return add_node(OpKind::kHardSigmoid, name, {x}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}});
}

Value* NetBuilder::add(Value* a, Value* b, const std::string& name) {
  return add_node(OpKind::kAdd, name, {a, b});
}

Value* NetBuilder::multiply(Value* a, Value* b, const std::string& name) {
  return add_node(OpKind::kMul, name, {a, b});
}

Value* NetBuilder::concat(std::vector<Value*> parts, const std::string& name, int64_t axis) {
  return add_node(OpKind::kConcat, name, std::move(parts), {{"axis", axis}});
}

Value* NetBuilder::max_pool(Value* x, const std::string& name, const PoolSpec& spec) {
  using Ints = std::vector<int64_t>;
  Attributes attributes = {{"kernel_shape", Ints{spec.kernel, spec.kernel}},
                           {"strides", Ints{spec.stride, spec.stride}},
                           {"pads", Ints{spec.pad, spec.pad, spec.pad, spec.pad}}};
  if (spec.ceil) attributes["ceil_mode"] = int64_t{1};
  return add_node(OpKind::kMaxPool, name, {x}, std::move(attributes));
}

Value* NetBuilder::average_pool(Value* x, const std::string& name, const PoolSpec& spec) {
  using Ints = std::vector<int64_t>;
  return add_node(OpKind::kAveragePool, name, {x},
                  {{"kernel_shape", Ints{spec.kernel, spec.kernel}},
                   {"strides", Ints{spec.stride, spec.stride}},
                   {"pads", Ints{spec.pad, spec.pad, spec.pad, spec.pad}},
                   {"count_include_pad", int64_t{1}}});
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

Value* NetBuilder::layer_norm(Value* x, const std::string& name, float epsilon) {
  const int64_t n = x->type.shape->back();
  return add_node(OpKind::kLayerNormalization, name,
                  {x, filled(name + ".weight", n, 1, true), filled(name + ".bias", n, 0, true)},
                  {{"epsilon", epsilon}});
}

Value* NetBuilder::matmul(Value* a, Value* b, const std::string& name) {
  return add_node(OpKind::kMatMul, name, {a, b});
}

Value* NetBuilder::softmax(Value* x, const std::string& name) {
  return add_node(OpKind::kSoftmax, name, {x});
}

Value* NetBuilder::scaled(Value* x, const std::string& name, float factor) {
  return add_node(OpKind::kMul, name, {x, graph_.add_constant(name + ".factor", Tensor::scalar<float>(factor))});
}

Value* NetBuilder::reshape(Value* x, const std::string& name, const std::vector<int64_t>& shape) {
  return add_node(OpKind::kReshape, name, {x, ints(name + ".shape", shape)});
}

Value* NetBuilder::transpose(Value* x, const std::string& name, const std::vector<int64_t>& order) {
  return add_node(OpKind::kTranspose, name, {x}, {{"perm", order}});
}

std::vector<Value*> NetBuilder::split(Value* x, const std::string& name, const std::vector<int64_t>& sizes) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < sizes.size(); ++i) parts.push_back(str(name, ".", i));
  ir::Node* node =
      graph_.add_node(OpKind::kSplit, name, {x, ints(name + ".sizes", sizes)}, parts, {{"axis", int64_t{1}}});
  ir::infer_node(*node);
  if (block_ >= 0) blocks_[name] = block_;
  return node->outputs;
}

Value* NetBuilder::slice(Value* x, const std::string& name, int64_t begin, int64_t end, int64_t axis) {
  return add_node(OpKind::kSlice, name,
                  {x, ints(name + ".begin", {begin}), ints(name + ".end", {end}), ints(name + ".axis", {axis})});
}

Value* NetBuilder::pad_front(Value* x, const std::string& name, int64_t count) {
  const size_t rank = x->type.shape->size();
  std::vector<int64_t> pads(2 * rank, 0);
  pads.at(1) = count;
  return add_node(OpKind::kPad, name, {x, ints(name + ".pads", pads)});
}

Value* NetBuilder::pad_end(Value* x, const std::string& name, const std::vector<int64_t>& counts) {
  if (std::all_of(counts.begin(), counts.end(), [](int64_t n) { return n == 0; })) return x;
  std::vector<int64_t> pads(counts.size(), 0);
  pads.insert(pads.end(), counts.begin(), counts.end());
  return add_node(OpKind::kPad, name, {x, ints(name + ".pads", pads)});
}

Value* NetBuilder::pad_border(Value* x, const std::string& name, int64_t count) {
  return add_node(OpKind::kPad, name, {x, ints(name + ".pads", {0, 0, count, count, 0, 0, count, count})});
}

Value* NetBuilder::embedding(const std::string& name, ir::Shape shape, double deviation) {
  const std::vector<float> values = normal(name, ir::element_count(shape), deviation);
  return parameter(name, std::move(shape), values);
}

Value* NetBuilder::constant_parameter(const std::string& name, ir::Shape shape, float value) {
  const std::vector<float> values(static_cast<size_t>(ir::element_count(shape)), value);
  return parameter(name, std::move(shape), values);
}

Value* NetBuilder::fixed(const std::string& name, ir::Shape shape, const std::vector<float>& values) {
  return graph_.add_constant(name, Tensor::of<float>(std::move(shape), values));
}

Value* NetBuilder::linear(Value* x, const std::string& name, int64_t out, const LinearInit& init,
                          const std::string& output_name) {
  const int64_t in = channels(x);
  const std::string weight = name + ".weight", bias = name + ".bias";
  const double fan_in_bound = 1 / std::sqrt(static_cast<double>(in));
  const std::vector<float> values = init.deviation
                                        ? normal(weight, out * in, *init.deviation)
                                        : uniform(weight, out * in, init.uniform_bound.value_or(fan_in_bound));
  const bool zero_bias = init.deviation || init.uniform_bound;
  Value* w = parameter(weight, {out, in}, values);
  if (!init.bias) return add_node(OpKind::kGemm, name, {x, w}, {{"transB", int64_t{1}}}, output_name);
  Value* b = zero_bias ? filled(bias, out, 0, true) : parameter(bias, {out}, uniform(bias, out, fan_in_bound));
  return add_node(OpKind::kGemm, name, {x, w, b}, {{"transB", int64_t{1}}}, output_name);
}

}  // namespace octet::models
