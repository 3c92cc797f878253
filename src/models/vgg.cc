#include <iterator>

#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {

Levels vgg_features(NetBuilder& net) {
  struct Stage {
    int64_t filters;
    int repeats16, repeats19;
  };
  static constexpr Stage kStages[] = {{64, 2, 2}, {128, 2, 2}, {256, 3, 4}, {512, 3, 4}, {512, 3, 4}};
  const std::string& arch = net.options().arch;
  require_pixels(net, 32);
  Levels levels;
  int64_t total = 1, number = 0;
  ir::Value* x = net.input();
  int index = 0;  // torchvision counts every layer
  const auto next = [&] { return str("features.", index++); };
  for (const Stage& stage : kStages) {
    net.begin_block(++number);
    const int repeats = arch == "vgg19" ? stage.repeats19 : stage.repeats16;
    for (int i = 0; i < repeats; ++i) {
      const std::string block = str("block_", number, static_cast<char>('a' + i));
      const auto name = [&](const char* layer) { return net.tao() ? block + layer : next(); };
      const bool strided = i == 0 && number > 1 && !net.uses_pooling();
      x = net.conv(x, name("_conv_1"), {.out = stage.filters, .kernel = 3, .stride = strided ? 2 : 1, .bias = true});
      if (net.uses_batch_norm()) x = net.batch_norm(x, name("_bn_1"));
      x = net.relu(x, name("_relu"));
      if (strided) total *= 2;
      add_level(levels, x, total);
    }
    const std::string pool = net.tao() ? str("block", number, "_pool") : next();
    const bool last = number == std::ssize(kStages);
    if (!net.uses_pooling() || (last && net.tao() && net.backbone())) continue;
    x = net.max_pool(x, pool, {});
    add_level(levels, x, total *= 2);
  }
  return levels;
}

ir::Value* vgg_classifier(NetBuilder& net, ir::Value* x) {
  const LinearInit init = {.deviation = 0.01};
  const auto name = [&](int index, const char* tao) {
    return net.tao() ? std::string(tao) : str("classifier.", index);
  };
  x = net.flatten(x, "flatten");
  x = net.relu(net.linear(x, name(0, "fc1"), 4096, init), name(1, "fc1_relu"));
  x = net.dropout(x, name(2, "dropout_1"), 0.5);
  x = net.relu(net.linear(x, name(3, "fc2"), 4096, init), name(4, "fc2_relu"));
  x = net.dropout(x, name(5, "dropout_2"), 0.5);
  return net.classes(x, name(6, "output_fc"), init);
}

}  // namespace octet::models
