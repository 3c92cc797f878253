#include <span>

#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

constexpr double kClassifierDeviation = 0.01;

struct BlockSpec {
  int64_t kernel, hidden, out;
  bool squeeze_excite;
  Activation activation;
  int64_t stride;
};

constexpr Activation kRe = Activation::kRelu, kHs = Activation::kHardSwish;
constexpr BlockSpec kLarge[] = {{3, 16, 16, false, kRe, 1},  {3, 64, 24, false, kRe, 2},  {3, 72, 24, false, kRe, 1},
                                {5, 72, 40, true, kRe, 2},   {5, 120, 40, true, kRe, 1},  {5, 120, 40, true, kRe, 1},
                                {3, 240, 80, false, kHs, 2}, {3, 200, 80, false, kHs, 1}, {3, 184, 80, false, kHs, 1},
                                {3, 184, 80, false, kHs, 1}, {3, 480, 112, true, kHs, 1}, {3, 672, 112, true, kHs, 1},
                                {5, 672, 160, true, kHs, 2}, {5, 960, 160, true, kHs, 1}, {5, 960, 160, true, kHs, 1}};
constexpr BlockSpec kSmall[] = {{3, 16, 16, true, kRe, 2},  {3, 72, 24, false, kRe, 2}, {3, 88, 24, false, kRe, 1},
                                {5, 96, 40, true, kHs, 2},  {5, 240, 40, true, kHs, 1}, {5, 240, 40, true, kHs, 1},
                                {5, 120, 48, true, kHs, 1}, {5, 144, 48, true, kHs, 1}, {5, 288, 96, true, kHs, 2},
                                {5, 576, 96, true, kHs, 1}, {5, 576, 96, true, kHs, 1}};

bool is_large(const NetBuilder& net) {
  return net.options().arch == "mobilenet_v3_large";
}

Value* squeeze_excite(NetBuilder& net, Value* x, const std::string& name) {
  const int64_t channels = NetBuilder::channels(x);
  Value* s = net.global_average(x, name + ".avgpool");
  s = net.conv(s, name + ".fc1", {.out = rounded_channels(static_cast<double>(channels / 4)), .bias = true});
  s = net.relu(s, name + ".activation");
  s = net.conv(s, name + ".fc2", {.out = channels, .bias = true});
  return net.multiply(x, net.hard_sigmoid(s, name + ".scale_activation"), name + ".scale");
}

Value* block(NetBuilder& net, Value* x, const std::string& name, const BlockSpec& spec) {
  const int64_t in = NetBuilder::channels(x);
  int part = 0;
  const auto next = [&] { return str(name, ".block.", part++); };
  const auto layer = [&](Value* y, const ConvSpec& conv) {
    return conv_norm_activation(net, y, torchvision_names(next()), conv, spec.activation);
  };
  Value* y = spec.hidden == in ? x : layer(x, {.out = spec.hidden});
  y = layer(y, {.out = spec.hidden, .kernel = spec.kernel, .stride = spec.stride, .groups = spec.hidden});
  if (spec.squeeze_excite) y = squeeze_excite(net, y, next());
  const LayerNames project = torchvision_names(next());
  const bool residual = spec.stride == 1 && in == spec.out;
  y = net.batch_norm(net.conv(y, project.conv, {.out = spec.out}), project.norm,
                     residual && net.options().zero_init_residual ? 0 : 1);
  return residual ? net.add(y, x, name + ".add") : y;
}

}  // namespace

Levels mobilenet_v3_features(NetBuilder& net) {
  const std::span<const BlockSpec> blocks = is_large(net) ? std::span<const BlockSpec>(kLarge) : kSmall;
  Levels levels;
  int64_t total = 2;
  int index = 0;
  net.begin_block(index);
  Value* x = conv_norm_activation(net, net.input(), torchvision_names("features.0"),
                                  {.out = 16, .kernel = 3, .stride = 2}, Activation::kHardSwish);
  add_level(levels, x, total);
  for (const BlockSpec& spec : blocks) {
    net.begin_block(++index);
    x = block(net, x, str("features.", index), spec);
    add_level(levels, x, total *= spec.stride);
  }
  net.begin_block(++index);
  x = conv_norm_activation(net, x, torchvision_names(str("features.", index)), {.out = 6 * NetBuilder::channels(x)},
                           Activation::kHardSwish);
  add_level(levels, x, total);
  return levels;
}

Value* mobilenet_v3_classifier(NetBuilder& net, Value* x) {
  x = net.flatten(net.global_average(x, "avgpool"), "flatten");
  x = net.linear(x, "classifier.0", is_large(net) ? 1280 : 1024, {.deviation = kClassifierDeviation});
  x = net.dropout(net.activation(x, "classifier.1", Activation::kHardSwish), "classifier.2", 0.2);
  return net.classes(x, "classifier.3", {.deviation = kClassifierDeviation});
}

}  // namespace octet::models
