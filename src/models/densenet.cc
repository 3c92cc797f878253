// DenseNet-121 (Huang et al. 2017) with torchvision's names.
#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

constexpr int64_t kGrowth = 32, kBottleneck = 4 * kGrowth;
constexpr int kLayers[] = {6, 12, 24, 16};

Value* normalized(NetBuilder& net, Value* x, const std::string& name, const std::string& number) {
  return net.relu(net.batch_norm(x, name + ".norm" + number), name + ".relu" + number);
}

Value* dense_layer(NetBuilder& net, Value* x, const std::string& name) {
  Value* y = net.conv(normalized(net, x, name, "1"), name + ".conv1", {.out = kBottleneck});
  return net.conv(normalized(net, y, name, "2"), name + ".conv2", {.out = kGrowth, .kernel = 3});
}

}  // namespace

Levels densenet_features(NetBuilder& net) {
  require_pixels(net, 32);
  Levels levels;
  net.begin_block(0);
  Value* x = net.conv(net.input(), "features.conv0", {.out = 2 * kGrowth, .kernel = 7, .stride = 2});
  x = normalized(net, x, "features", "0");
  add_level(levels, x, 2);
  x = net.max_pool(x, "features.pool0", {.kernel = 3, .stride = 2, .pad = 1});
  for (int stage = 1; stage <= 4; ++stage) {
    net.begin_block(stage);
    const std::string block = str("features.denseblock", stage);
    for (int i = 1; i <= kLayers[stage - 1]; ++i) {
      const std::string name = str(block, ".denselayer", i);
      x = net.concat({x, dense_layer(net, x, name)}, name + ".cat");
    }
    if (stage == 4) break;
    add_level(levels, x, int64_t{2} << stage);
    const std::string name = str("features.transition", stage);
    x = net.conv(normalized(net, x, name, ""), name + ".conv", {.out = NetBuilder::channels(x) / 2});
    x = net.average_pool(x, name + ".pool", {});
  }
  add_level(levels, normalized(net, x, "features", "5"), 32);
  return levels;
}

Value* densenet_classifier(NetBuilder& net, Value* x) {
  x = net.dropout(net.flatten(net.global_average(x, "avgpool"), "flatten"), "dropout", 0);
  return net.classes(x, "classifier", {});
}

}  // namespace octet::models
