#include "models/net_builder.h"

#include <cmath>

#include "ir/infer.h"
#include "models/initialize.h"

namespace octet::models {

using ir::Attributes;
using ir::OpKind;
using ir::Tensor;
using ir::Value;

NetBuilder::NetBuilder(const ModelOptions& options) : options_(options) {
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

Value* NetBuilder::conv(Value* x, const std::string& name, const ConvSpec& spec) {
  const int64_t k = spec.kernel, pad = (k - 1) / 2, in = channels(x) / spec.groups;
  // As PyTorch counts fan out: all filters, whatever the groups.
  const double deviation = std::sqrt(2.0 / static_cast<double>(spec.out * k * k));
  const std::string weight = name + ".weight";
  std::vector<Value*> inputs = {x, parameter(weight, {spec.out, in, k, k},
                                             normal_values(spec.out * in * k * k, deviation, options_.seed, weight))};
  if (spec.bias) inputs.push_back(filled(name + ".bias", spec.out, 0, true));
  using Ints = std::vector<int64_t>;
  return graph_.add(OpKind::kConv, name, std::move(inputs),
                    {{"kernel_shape", Ints{k, k}},
                     {"strides", Ints{spec.stride, spec.stride}},
                     {"pads", Ints{pad, pad, pad, pad}},
                     {"dilations", Ints{1, 1}},
                     {"group", spec.groups}});
}

Value* NetBuilder::batch_norm(Value* x, const std::string& name, float gamma) {
  const int64_t n = channels(x);
  return graph_.add(OpKind::kBatchNormalization, name,
                    {x, filled(name + ".weight", n, gamma, true), filled(name + ".bias", n, 0, true),
                     filled(name + ".running_mean", n, 0, false), filled(name + ".running_var", n, 1, false)},
                    {{"epsilon", 1e-5f}, {"momentum", 0.9f}});
}

Value* NetBuilder::relu(Value* x, const std::string& name) {
  return graph_.add(OpKind::kRelu, name, {x});
}

Value* NetBuilder::relu6(Value* x, const std::string& name) {
  return graph_.add(OpKind::kClip, name, {x, shared_scalar("relu6.min", 0), shared_scalar("relu6.max", 6)});
}

Value* NetBuilder::sigmoid(Value* x, const std::string& name) {
  return graph_.add(OpKind::kSigmoid, name, {x});
}

Value* NetBuilder::silu(Value* x, const std::string& name) {
  return multiply(x, sigmoid(x, name + ".sigmoid"), name);
}

Value* NetBuilder::add(Value* a, Value* b, const std::string& name) {
  return graph_.add(OpKind::kAdd, name, {a, b});
}

Value* NetBuilder::multiply(Value* a, Value* b, const std::string& name) {
  return graph_.add(OpKind::kMul, name, {a, b});
}

Value* NetBuilder::max_pool(Value* x, const std::string& name, int64_t kernel, int64_t stride, int64_t pad) {
  using Ints = std::vector<int64_t>;
  return graph_.add(
      OpKind::kMaxPool, name, {x},
      {{"kernel_shape", Ints{kernel, kernel}}, {"strides", Ints{stride, stride}}, {"pads", Ints{pad, pad, pad, pad}}});
}

Value* NetBuilder::global_average(Value* x, const std::string& name) {
  return graph_.add(OpKind::kGlobalAveragePool, name, {x});
}

Value* NetBuilder::flatten(Value* x, const std::string& name) {
  return graph_.add(OpKind::kFlatten, name, {x}, {{"axis", int64_t{1}}});
}

Value* NetBuilder::dropout(Value* x, const std::string& name, double published) {
  const double probability = options_.dropout < 0 ? published : options_.dropout;
  if (probability == 0) return x;
  Value* ratio = graph_.add_constant(name + ".ratio", Tensor::scalar<float>(static_cast<float>(probability)));
  return graph_.add(OpKind::kDropout, name, {x, ratio});
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
  ir::Node* node = graph_.add_node(OpKind::kGemm, name, {x, w, b}, {output_name.empty() ? name : output_name},
                                   {{"transB", int64_t{1}}});
  ir::infer_node(*node);
  return node->output();
}

}  // namespace octet::models
