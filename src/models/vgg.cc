#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {

Levels vgg_features(NetBuilder& net) {
  constexpr int kPool = 0;  // the other numbers are filters of a 3x3 convolution
  static constexpr int kLayers[] = {64,    64,  kPool, 128, 128,   kPool, 256, 256, 256,
                                    kPool, 512, 512,   512, kPool, 512,   512, 512, kPool};
  const auto [channels, height, width] = net.options().input;
  if (height < 32 || width < 32)
    fail_usage("vgg16_bn halves its input five times and needs at least 32x32 pixels, not ", height, "x", width);
  Levels levels;
  int64_t total = 1;
  ir::Value* x = net.input();
  int index = 0;  // torchvision counts every layer
  const auto next = [&] { return str("features.", index++); };
  for (const int filters : kLayers) {
    if (filters == kPool) {
      x = net.max_pool(x, next(), 2, 2, 0);
      add_level(levels, x, total *= 2);
      continue;
    }
    x = net.conv(x, next(), {.out = filters, .kernel = 3, .bias = true});
    x = net.batch_norm(x, next());
    x = net.relu(x, next());
    add_level(levels, x, total);
  }
  return levels;
}

ir::Value* vgg_classifier(NetBuilder& net, ir::Value* x) {
  const LinearInit init = {.deviation = 0.01};
  x = net.flatten(x, "flatten");
  x = net.relu(net.linear(x, "classifier.0", 4096, init), "classifier.1");
  x = net.dropout(x, "classifier.2", 0.5);
  x = net.relu(net.linear(x, "classifier.3", 4096, init), "classifier.4");
  x = net.dropout(x, "classifier.5", 0.5);
  return net.classes(x, "classifier.6", init);
}

}  // namespace octet::models
