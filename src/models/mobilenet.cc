#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

// Both papers' classifier start: narrow normal, as torchvision.
constexpr double kClassifierDeviation = 0.01;

// Convolution, normalization and ReLU6 as one torchvision module: name.0, name.1, name.2.
Value* conv_bn_relu6(NetBuilder& net, Value* x, const std::string& name, const ConvSpec& spec) {
  return net.relu6(net.batch_norm(net.conv(x, name + ".0", spec), name + ".1"), name + ".2");
}

Value* inverted_residual(NetBuilder& net, Value* x, const std::string& name, int64_t expansion, int64_t out,
                         int64_t stride) {
  const int64_t in = NetBuilder::channels(x), hidden = in * expansion;
  int part = 0;
  const auto next = [&] { return str(name, ".conv.", part++); };
  Value* y = x;
  if (expansion != 1) y = conv_bn_relu6(net, y, next(), {.out = hidden});
  y = conv_bn_relu6(net, y, next(), {.out = hidden, .kernel = 3, .stride = stride, .groups = hidden});
  y = net.conv(y, next(), {.out = out});
  const bool residual = stride == 1 && in == out;
  y = net.batch_norm(y, next(), residual && net.options().zero_init_residual ? 0 : 1);
  return residual ? net.add(x, y, name + ".add") : y;
}

}  // namespace

Levels mobilenet_v1_features(NetBuilder& net) {
  struct Block {
    int64_t out, stride;
  };
  static constexpr Block kBlocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                                      {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  Levels levels;
  int64_t total = 2;
  Value* x = conv_bn_relu6(net, net.input(), "features.0", {.out = 32, .kernel = 3, .stride = 2});
  int index = 1;
  for (const auto [out, stride] : kBlocks) {
    const std::string name = str("features.", index++);
    const int64_t in = NetBuilder::channels(x);
    x = conv_bn_relu6(net, x, name + ".depthwise", {.out = in, .kernel = 3, .stride = stride, .groups = in});
    x = conv_bn_relu6(net, x, name + ".pointwise", {.out = out});
    add_level(levels, x, total *= stride);
  }
  return levels;
}

Value* mobilenet_v1_classifier(NetBuilder& net, Value* x) {
  x = net.dropout(net.flatten(net.global_average(x, "avgpool"), "flatten"), "classifier.0", 0);
  return net.classes(x, "classifier.1", {.deviation = kClassifierDeviation});
}

Levels mobilenet_v2_features(NetBuilder& net) {
  struct Stage {
    int64_t expansion, out;
    int repeats;
    int64_t stride;
  };
  static constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                      {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  Levels levels;
  int64_t total = 2;
  Value* x = conv_bn_relu6(net, net.input(), "features.0", {.out = 32, .kernel = 3, .stride = 2});
  int index = 1;
  for (const auto [expansion, out, repeats, stride] : kStages) {
    for (int i = 0; i < repeats; ++i)
      x = inverted_residual(net, x, str("features.", index++), expansion, out, i == 0 ? stride : 1);
    add_level(levels, x, total *= stride);
  }
  add_level(levels, conv_bn_relu6(net, x, str("features.", index), {.out = 1280}), total);
  return levels;
}

Value* mobilenet_v2_classifier(NetBuilder& net, Value* x) {
  x = net.dropout(net.flatten(net.global_average(x, "avgpool"), "flatten"), "classifier.0", 0.2);
  return net.classes(x, "classifier.1", {.deviation = kClassifierDeviation});
}

}  // namespace octet::models
