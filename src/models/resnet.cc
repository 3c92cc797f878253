#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

struct BlockSpec {
  int64_t planes;
  int64_t stride;
  bool bottleneck;
};

// One residual block. The shortcut gets a 1x1 convolution where shape or channels change.
Value* block(NetBuilder& net, Value* x, const std::string& name, const BlockSpec& spec) {
  const float last_gamma = net.options().zero_init_residual ? 0 : 1;
  const auto [planes, stride, bottleneck] = spec;
  const int64_t out = bottleneck ? 4 * planes : planes;
  Value* y = x;
  if (bottleneck) {
    y = net.relu(net.batch_norm(net.conv(y, name + ".conv1", {.out = planes}), name + ".bn1"), name + ".relu1");
    y = net.conv(y, name + ".conv2", {.out = planes, .kernel = 3, .stride = stride});
    y = net.relu(net.batch_norm(y, name + ".bn2"), name + ".relu2");
    y = net.batch_norm(net.conv(y, name + ".conv3", {.out = out}), name + ".bn3", last_gamma);
  } else {
    y = net.conv(y, name + ".conv1", {.out = planes, .kernel = 3, .stride = stride});
    y = net.relu(net.batch_norm(y, name + ".bn1"), name + ".relu1");
    y = net.conv(y, name + ".conv2", {.out = planes, .kernel = 3});
    y = net.batch_norm(y, name + ".bn2", last_gamma);
  }
  Value* shortcut = x;
  if (stride != 1 || NetBuilder::channels(x) != out)
    shortcut =
        net.batch_norm(net.conv(x, name + ".downsample.0", {.out = out, .stride = stride}), name + ".downsample.1");
  return net.relu(net.add(y, shortcut, name + ".add"), name + ".relu");
}

Value* stage(NetBuilder& net, Value* x, const std::string& name, int blocks, BlockSpec spec) {
  for (int i = 0; i < blocks; ++i) {
    x = block(net, x, str(name, ".", i), spec);
    spec.stride = 1;
  }
  return x;
}

}  // namespace

Levels cifar_resnet_features(NetBuilder& net) {
  const std::string& arch = net.options().arch;
  const int depth = arch == "resnet20" ? 20 : arch == "resnet32" ? 32 : 56;
  const int blocks = (depth - 2) / 6;
  Levels levels;
  Value* x = net.conv(net.input(), "conv1", {.out = 16, .kernel = 3});
  x = net.relu(net.batch_norm(x, "bn1"), "relu");
  for (int i = 0; i < 3; ++i) {
    x = stage(net, x, str("layer", i + 1), blocks,
              {.planes = int64_t{16} << i, .stride = i == 0 ? 1 : 2, .bottleneck = false});
    levels.push_back({x, int64_t{1} << i});
  }
  return levels;
}

Levels resnet_features(NetBuilder& net) {
  struct Depth {
    const char* name;
    int blocks[4];
    bool bottleneck;
  };
  static constexpr Depth kDepths[] = {{"resnet18", {2, 2, 2, 2}, false},
                                      {"resnet34", {3, 4, 6, 3}, false},
                                      {"resnet50", {3, 4, 6, 3}, true},
                                      {"resnet101", {3, 4, 23, 3}, true}};
  const Depth* depth = nullptr;
  for (const Depth& d : kDepths)
    if (net.options().arch == d.name) depth = &d;
  OCTET_CHECK(depth != nullptr, net.options().arch);
  Levels levels;
  Value* x = net.conv(net.input(), "conv1", {.out = 64, .kernel = 7, .stride = 2});
  x = net.relu(net.batch_norm(x, "bn1"), "relu");
  x = net.max_pool(x, "maxpool", 3, 2, 1);
  for (int i = 0; i < 4; ++i) {
    x = stage(net, x, str("layer", i + 1), depth->blocks[i],
              {.planes = int64_t{64} << i, .stride = i == 0 ? 1 : 2, .bottleneck = depth->bottleneck});
    levels.push_back({x, int64_t{4} << i});
  }
  return levels;
}

Value* resnet_classifier(NetBuilder& net, Value* x) {
  x = net.dropout(net.flatten(net.global_average(x, "avgpool"), "flatten"), "dropout", 0);
  return net.classes(x, "fc", {});
}

}  // namespace octet::models
