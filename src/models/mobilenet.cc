#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

// Both papers' classifier start: narrow normal, as torchvision.
constexpr double kClassifierDeviation = 0.01;

// ReLU6 as published, plain in TAO's.
Value* layer(NetBuilder& net, Value* x, const LayerNames& names, const ConvSpec& spec) {
  return conv_norm_activation(net, x, names, spec, net.tao() ? Activation::kRelu : Activation::kRelu6);
}

// The `index`-th of the network, from 1.
Value* inverted_residual(NetBuilder& net, Value* x, int index, int64_t expansion, int64_t out, int64_t stride) {
  const std::string ours = str("features.", index), theirs = index == 1 ? "expanded_conv" : str("block_", index - 1);
  const int64_t in = NetBuilder::channels(x), hidden = in * expansion;
  int part = 0;
  const auto next = [&] { return str(ours, ".conv.", part++); };
  const auto names = [&](const char* tao) { return net.tao() ? tao_names(theirs + tao) : torchvision_names(next()); };
  Value* y = x;
  if (expansion != 1) y = layer(net, y, names("_expand"), {.out = hidden});
  y = layer(net, y, names("_depthwise"), {.out = hidden, .kernel = 3, .stride = stride, .groups = hidden});
  y = net.conv(y, net.tao() ? theirs + "_project" : next(), {.out = out});
  const bool residual = stride == 1 && in == out;
  y = net.batch_norm(y, net.tao() ? theirs + "_project_bn" : next(),
                     residual && net.options().zero_init_residual ? 0 : 1);
  return residual ? net.add(x, y, net.tao() ? theirs + "_add" : ours + ".add") : y;
}

}  // namespace

Levels mobilenet_v1_features(NetBuilder& net) {
  struct Block {
    int64_t out, stride;
  };
  static constexpr Block kBlocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                                      {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  const auto names = [&](const std::string& ours, const std::string& theirs) {
    return net.tao() ? tao_names(theirs) : torchvision_names(ours);
  };
  Levels levels;
  int64_t total = 2;
  net.begin_block(0);
  Value* x = layer(net, net.input(), names("features.0", "conv1"), {.out = 32, .kernel = 3, .stride = 2});
  int index = 1;
  for (const auto [out, stride] : kBlocks) {
    net.begin_block(index);
    const std::string name = str("features.", index);
    const int64_t in = NetBuilder::channels(x);
    x = layer(net, x, names(name + ".depthwise", str("conv_dw_", index)),
              {.out = in, .kernel = 3, .stride = stride, .groups = in});
    x = layer(net, x, names(name + ".pointwise", str("conv_pw_", index)), {.out = out});
    add_level(levels, x, total *= stride);
    ++index;
  }
  return levels;
}

Value* mobilenet_v1_classifier(NetBuilder& net, Value* x) {
  x = net.flatten(net.global_average(x, "avgpool"), "flatten");
  x = net.dropout(x, net.tao() ? "dropout" : "classifier.0", net.tao() ? 1e-3 : 0);
  return net.classes(x, net.tao() ? "predictions" : "classifier.1", {.deviation = kClassifierDeviation});
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
  net.begin_block(0);
  const LayerNames stem = net.tao() ? LayerNames{"conv1", "bn_conv1", "conv1_relu"} : torchvision_names("features.0");
  Value* x = layer(net, net.input(), stem, {.out = 32, .kernel = 3, .stride = 2});
  int index = 1;
  for (const auto [expansion, out, repeats, stride] : kStages) {
    for (int i = 0; i < repeats; ++i) {
      net.begin_block(index);
      x = inverted_residual(net, x, index++, expansion, out, i == 0 ? stride : 1);
    }
    add_level(levels, x, total *= stride);
  }
  net.begin_block(index);
  const LayerNames top = net.tao() ? tao_names("conv_1") : torchvision_names(str("features.", index));
  add_level(levels, layer(net, x, top, {.out = 1280}), total);
  return levels;
}

Value* mobilenet_v2_classifier(NetBuilder& net, Value* x) {
  x = net.flatten(net.global_average(x, "avgpool"), "flatten");
  x = net.dropout(x, net.tao() ? "dropout" : "classifier.0", net.tao() ? 0 : 0.2);
  return net.classes(x, net.tao() ? "predictions" : "classifier.1", {.deviation = kClassifierDeviation});
}

}  // namespace octet::models
