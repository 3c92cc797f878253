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
  for (int i = 0; i < blocks; i++) {
    x = block(net, x, str(name, ".", i), spec);
    spec.stride = 1;
  }
  return x;
}

}  // namespace

ir::Graph build_cifar_resnet(const ModelOptions& options) {
  const int depth = options.arch == "resnet20" ? 20 : options.arch == "resnet32" ? 32 : 56;
  const int blocks = (depth - 2) / 6;
  NetBuilder net(options);
  Value* x = net.conv(net.input(), "conv1", {.out = 16, .kernel = 3});
  x = net.relu(net.batch_norm(x, "bn1"), "relu");
  x = stage(net, x, "layer1", blocks, {.planes = 16, .stride = 1, .bottleneck = false});
  x = stage(net, x, "layer2", blocks, {.planes = 32, .stride = 2, .bottleneck = false});
  x = stage(net, x, "layer3", blocks, {.planes = 64, .stride = 2, .bottleneck = false});
  x = net.dropout(net.flatten(net.global_average(x, "avgpool"), "flatten"), "dropout", 0);
  return net.finish(x, "fc", {});
}

ir::Graph build_resnet(const ModelOptions& options) {
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
    if (options.arch == d.name) depth = &d;
  OCTET_CHECK(depth != nullptr, options.arch);
  NetBuilder net(options);
  Value* x = net.conv(net.input(), "conv1", {.out = 64, .kernel = 7, .stride = 2});
  x = net.relu(net.batch_norm(x, "bn1"), "relu");
  x = net.max_pool(x, "maxpool", 3, 2, 1);
  for (int i = 0; i < 4; i++)
    x = stage(net, x, str("layer", i + 1), depth->blocks[i],
              {.planes = int64_t{64} << i, .stride = i == 0 ? 1 : 2, .bottleneck = depth->bottleneck});
  x = net.dropout(net.flatten(net.global_average(x, "avgpool"), "flatten"), "dropout", 0);
  return net.finish(x, "fc", {});
}

}  // namespace octet::models
