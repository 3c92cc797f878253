#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

struct BlockSpec {
  int64_t planes;
  int64_t stride;
  bool bottleneck;
  bool first = true;  // of its stage
};

// The names of the layers of a residual block.
struct BlockNames {
  std::string conv, norm, relu;  // and the number of the layer within the block
  std::string shortcut_conv, shortcut_norm, add, output;
};

BlockNames block_names(const NetBuilder& net, const std::string& block) {
  if (net.tao())
    return {block + "_conv_",       block + "_bn_", block + "_relu_", block + "_conv_shortcut",
            block + "_bn_shortcut", block + "_add", block + "_relu"};
  return {block + ".conv",         block + ".bn",  block + ".relu", block + ".downsample.0",
          block + ".downsample.1", block + ".add", block + ".relu"};
}

// One residual block. The shortcut gets a 1x1 convolution where shape or channels change, or where it is asked for.
Value* block(NetBuilder& net, Value* x, const std::string& name, const BlockSpec& spec) {
  struct Layer {
    int64_t kernel, out;
  };
  const std::vector<Layer> layers = spec.bottleneck
                                        ? std::vector<Layer>{{1, spec.planes}, {3, spec.planes}, {1, 4 * spec.planes}}
                                        : std::vector<Layer>{{3, spec.planes}, {3, spec.planes}};
  const BlockNames names = block_names(net, name);
  const size_t strided = spec.bottleneck && !net.tao() ? 1 : 0;
  const int64_t out = layers.back().out;
  Value* y = x;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    const bool last = i + 1 == layers.size();
    y = net.conv(y, names.conv + number,
                 {.out = layers[i].out,
                  .kernel = layers[i].kernel,
                  .stride = i == strided ? spec.stride : 1,
                  .bias = net.tao()});
    y = net.batch_norm(y, names.norm + number, last && net.options().zero_init_residual ? 0 : 1);
    if (!last) y = net.relu(y, names.relu + number);
  }
  Value* shortcut = x;
  if (spec.stride != 1 || NetBuilder::channels(x) != out || net.options().all_projections || (net.tao() && spec.first))
    shortcut = net.batch_norm(net.conv(x, names.shortcut_conv, {.out = out, .stride = spec.stride, .bias = net.tao()}),
                              names.shortcut_norm);
  return net.relu(net.add(y, shortcut, names.add), names.output);
}

// `number` counts from 1.
Value* stage(NetBuilder& net, Value* x, int number, int blocks, BlockSpec spec) {
  net.begin_block(number);
  for (int i = 0; i < blocks; ++i) {
    x = block(net, x, net.tao() ? str("block_", number, static_cast<char>('a' + i)) : str("layer", number, ".", i),
              spec);
    spec.stride = 1;
    spec.first = false;
  }
  return x;
}

}  // namespace

Levels cifar_resnet_features(NetBuilder& net) {
  const std::string& arch = net.options().arch;
  const int depth = arch == "resnet20" ? 20 : arch == "resnet32" ? 32 : 56;
  const int blocks = (depth - 2) / 6;
  Levels levels;
  net.begin_block(0);
  Value* x = net.conv(net.input(), "conv1", {.out = 16, .kernel = 3});
  x = net.relu(net.batch_norm(x, "bn1"), "relu");
  for (int i = 0; i < 3; ++i) {
    x = stage(net, x, i + 1, blocks, {.planes = int64_t{16} << i, .stride = i == 0 ? 1 : 2, .bottleneck = false});
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
  static constexpr Depth kDepths[] = {{"resnet10", {1, 1, 1, 1}, false},
                                      {"resnet18", {2, 2, 2, 2}, false},
                                      {"resnet34", {3, 4, 6, 3}, false},
                                      {"resnet50", {3, 4, 6, 3}, true},
                                      {"resnet101", {3, 4, 23, 3}, true}};
  const Depth* depth = nullptr;
  for (const Depth& d : kDepths)
    if (net.options().arch == d.name) depth = &d;
  OCTET_CHECK(depth != nullptr, net.options().arch);
  Levels levels;
  net.begin_block(0);
  Value* x = net.conv(net.input(), "conv1", {.out = 64, .kernel = 7, .stride = 2, .bias = net.tao()});
  x = net.relu(net.batch_norm(x, net.tao() ? "bn_conv1" : "bn1"), "relu");
  int64_t total = 2;
  if (net.uses_pooling()) {
    x = net.max_pool(x, "maxpool", {.kernel = 3, .stride = 2, .pad = 1});
    total *= 2;
  }
  for (int i = 0; i < 4; ++i) {
    int64_t stride = 2;
    if (i == 0) stride = net.uses_pooling() ? 1 : 2;
    if (i == 3 && net.tao() && !net.uses_pooling()) stride = 1;
    x = stage(net, x, i + 1, depth->blocks[i],
              {.planes = int64_t{64} << i, .stride = stride, .bottleneck = depth->bottleneck});
    add_level(levels, x, total *= stride);
  }
  return levels;
}

Value* resnet_classifier(NetBuilder& net, Value* x) {
  x = net.dropout(net.flatten(net.global_average(x, "avgpool"), "flatten"), "dropout", 0);
  return net.classes(x, net.tao() ? "predictions" : "fc", {});
}

}  // namespace octet::models
