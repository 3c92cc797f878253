#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

Value* layer(NetBuilder& net, Value* x, const std::string& name, int64_t out, int64_t kernel, int64_t stride = 1) {
  return conv_norm_activation(net, x, tao_names(name, "lrelu"), {.out = out, .kernel = kernel, .stride = stride},
                              Activation::kLeakyRelu);
}

// Redmon and Farhadi 2017: pools between stages whose 3x3 convolutions alternate with 1x1 ones of half the filters.
Levels darknet19(NetBuilder& net) {
  static constexpr int kLayers[] = {1, 3, 3, 5, 5};
  require_pixels(net, 32);
  Levels levels;
  net.begin_block(0);
  Value* x = layer(net, net.input(), "conv1", 32, 3);
  levels.push_back({x, 1});
  int64_t total = 1, filters = 32;
  for (int stage = 1; stage <= 5; ++stage) {
    net.begin_block(stage);
    x = net.max_pool(x, str("maxpool_", stage), {});
    filters *= 2;
    for (int i = 0; i < kLayers[stage - 1]; ++i) {
      const bool narrow = i % 2 == 1;
      x = layer(net, x, str("b", stage, "_conv", i + 1), narrow ? filters / 2 : filters, narrow ? 1 : 3);
    }
    levels.push_back({x, total *= 2});
  }
  return levels;
}

// Redmon and Farhadi 2018: residual blocks behind a convolution that strides.
Levels darknet53(NetBuilder& net) {
  static constexpr int kRepeats[] = {1, 2, 8, 8, 4};
  Levels levels;
  net.begin_block(0);
  Value* x = layer(net, net.input(), "conv1", 32, 3);
  levels.push_back({x, 1});
  int64_t total = 1, filters = 32;
  for (int stage = 1; stage <= 5; ++stage) {
    net.begin_block(stage);
    filters *= 2;
    x = layer(net, x, str("conv", stage + 1), filters, 3, 2);
    for (int i = 1; i <= kRepeats[stage - 1]; ++i) {
      Value* y = layer(net, x, str("b", stage, "_conv", i, "_1"), filters / 2, 1);
      y = layer(net, y, str("b", stage, "_conv", i, "_2"), filters, 3);
      x = net.add(x, y, str("b", stage, "_add", i));
    }
    levels.push_back({x, total *= 2});
  }
  return levels;
}

}  // namespace

Levels darknet_features(NetBuilder& net) {
  return net.options().arch == "darknet19" ? darknet19(net) : darknet53(net);
}

Value* darknet_classifier(NetBuilder& net, Value* x) {
  // The published darknet19 scores every place and averages the scores; the others average first.
  if (net.options().arch == "darknet19" && !net.tao()) {
    x = net.conv(x, "predictions", {.out = net.options().num_classes, .bias = true, .deviation = 0.01});
    return net.flatten(net.global_average(x, "avgpool"), "flatten", "logits");
  }
  x = net.dropout(net.flatten(net.global_average(x, "avgpool"), "flatten"), "dropout", 0);
  return net.classes(x, "predictions", {});
}

}  // namespace octet::models
