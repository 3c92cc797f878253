#include <algorithm>
#include <cmath>

#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

struct StageSpec {
  int64_t expansion, kernel, stride, out;
  int repeats;
};

Value* conv_bn_silu(NetBuilder& net, Value* x, const std::string& name, const ConvSpec& spec) {
  return net.silu(net.batch_norm(net.conv(x, name + ".0", spec), name + ".1"), name + ".2");
}

Value* squeeze_excite(NetBuilder& net, Value* x, const std::string& name, int64_t squeezed) {
  Value* s = net.global_average(x, name + ".avgpool");
  s = net.silu(net.conv(s, name + ".fc1", {.out = squeezed, .bias = true}), name + ".activation");
  s = net.conv(s, name + ".fc2", {.out = NetBuilder::channels(x), .bias = true});
  return net.multiply(x, net.sigmoid(s, name + ".scale_activation"), name + ".scale");
}

Value* mb_conv(NetBuilder& net, Value* x, const std::string& name, const StageSpec& spec, int64_t stride) {
  const int64_t in = NetBuilder::channels(x), hidden = in * spec.expansion;
  int part = 0;
  const auto next = [&] { return str(name, ".block.", part++); };
  Value* y = x;
  if (spec.expansion != 1) y = conv_bn_silu(net, y, next(), {.out = hidden});
  y = conv_bn_silu(net, y, next(), {.out = hidden, .kernel = spec.kernel, .stride = stride, .groups = hidden});
  y = squeeze_excite(net, y, next(), std::max<int64_t>(1, in / 4));
  const std::string project = next();
  const bool residual = stride == 1 && in == spec.out;
  y = net.batch_norm(net.conv(y, project + ".0", {.out = spec.out}), project + ".1",
                     residual && net.options().zero_init_residual ? 0 : 1);
  return residual ? net.add(y, x, name + ".add") : y;
}

}  // namespace

Levels efficientnet_features(NetBuilder& net) {
  static constexpr StageSpec kStages[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                                          {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
  Levels levels;
  int64_t total = 2;
  Value* x = conv_bn_silu(net, net.input(), "features.0", {.out = 32, .kernel = 3, .stride = 2});
  int index = 1;
  for (const StageSpec& spec : kStages) {
    for (int i = 0; i < spec.repeats; ++i)
      x = mb_conv(net, x, str("features.", index, ".", i), spec, i == 0 ? spec.stride : 1);
    ++index;
    add_level(levels, x, total *= spec.stride);
  }
  add_level(levels, conv_bn_silu(net, x, str("features.", index), {.out = 1280}), total);
  return levels;
}

Value* efficientnet_classifier(NetBuilder& net, Value* x) {
  x = net.dropout(net.flatten(net.global_average(x, "avgpool"), "flatten"), "classifier.0", 0.2);
  return net.classes(x, "classifier.1",
                     {.uniform_bound = 1 / std::sqrt(static_cast<double>(net.options().num_classes))});
}

}  // namespace octet::models
