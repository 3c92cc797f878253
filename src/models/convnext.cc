// ConvNeXt-Tiny (Liu et al. 2022) with torchvision's names. Stochastic depth, a training-time regularizer without an
// ONNX form, is not in the graph. The pixels of all images are the rows of one matrix for the linear layers.
#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

constexpr int64_t kWidths[] = {96, 192, 384, 768};
constexpr int kBlocks[] = {3, 3, 9, 3};
constexpr double kDeviation = 0.02;
constexpr float kLayerScale = 1e-6f;

// The channels of each pixel, normalized.
Value* channels_norm(NetBuilder& net, Value* x, const std::string& name) {
  Value* y = net.transpose(x, name + ".last", {0, 2, 3, 1});
  return net.transpose(net.layer_norm(y, name), name + ".first", {0, 3, 1, 2});
}

Value* patches(NetBuilder& net, Value* x, const std::string& name, int64_t out, int64_t side) {
  return net.conv(x, name,
                  {.out = out,
                   .kernel = side,
                   .stride = side,
                   .bias = true,
                   .padding = ConvSpec::Padding::kNone,
                   .deviation = kDeviation});
}

Value* block(NetBuilder& net, Value* x, const std::string& name) {
  const ir::Shape shape = *x->type.shape;
  const int64_t channels = shape[1];
  const LinearInit init{.deviation = kDeviation};
  Value* y = net.conv(x, name + ".block.0",
                      {.out = channels, .kernel = 7, .groups = channels, .bias = true, .deviation = kDeviation});
  y = net.reshape(net.transpose(y, name + ".block.1", {0, 2, 3, 1}), name + ".rows", {-1, channels});
  y = net.linear(net.layer_norm(y, name + ".block.2"), name + ".block.3", 4 * channels, init);
  y = net.linear(net.activation(y, name + ".block.4", Activation::kGelu), name + ".block.5", channels, init);
  y = net.reshape(y, name + ".image", {-1, shape[2], shape[3], channels});
  y = net.transpose(y, name + ".block.6", {0, 3, 1, 2});
  const float scale = net.options().zero_init_residual ? 0 : kLayerScale;
  y = net.multiply(y, net.constant_parameter(name + ".layer_scale", {channels, 1, 1}, scale), name + ".scaled");
  return net.add(y, x, name + ".add");
}

}  // namespace

Levels convnext_features(NetBuilder& net) {
  require_pixels(net, 32);
  Levels levels;
  net.begin_block(0);
  Value* x = channels_norm(net, patches(net, net.input(), "features.0.0", kWidths[0], 4), "features.0.1");
  for (int stage = 0; stage < 4; ++stage) {
    net.begin_block(stage + 1);
    if (stage > 0) {
      const std::string name = str("features.", 2 * stage);
      x = patches(net, channels_norm(net, x, name + ".0"), name + ".1", kWidths[stage], 2);
    }
    for (int i = 0; i < kBlocks[stage]; ++i) x = block(net, x, str("features.", 2 * stage + 1, ".", i));
    add_level(levels, x, int64_t{4} << stage);
  }
  return levels;
}

Value* convnext_classifier(NetBuilder& net, Value* x) {
  x = net.layer_norm(net.flatten(net.global_average(x, "avgpool"), "classifier.1"), "classifier.0");
  return net.classes(net.dropout(x, "dropout", 0), "classifier.2", {.deviation = kDeviation});
}

}  // namespace octet::models
