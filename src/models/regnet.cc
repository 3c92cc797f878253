// RegNetY (Radosavovic et al. 2020) with torchvision's names.
#include <array>
#include <cmath>

#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

// The stages that the paper's three numbers (slope, width and step of the widths) come to.
struct Stages {
  std::array<int64_t, 4> depth, width;
  int64_t group_width;
};

Stages stages(const std::string& arch) {
  if (arch == "regnet_y_400mf") return {{1, 3, 6, 6}, {48, 104, 208, 440}, 8};
  if (arch == "regnet_y_800mf") return {{1, 3, 8, 2}, {64, 144, 320, 784}, 16};
  OCTET_CHECK(arch == "regnet_y_1_6gf");
  return {{2, 6, 17, 2}, {48, 120, 336, 888}, 24};
}

// A quarter of the channels that the block takes in.
Value* squeeze_excite(NetBuilder& net, Value* x, const std::string& name, int64_t squeezed) {
  Value* s = net.global_average(x, name + ".avgpool");
  s = net.relu(net.conv(s, name + ".fc1", {.out = squeezed, .bias = true}), name + ".activation");
  s = net.conv(s, name + ".fc2", {.out = NetBuilder::channels(x), .bias = true});
  return net.multiply(x, net.sigmoid(s, name + ".scale_activation"), name + ".scale");
}

Value* block(NetBuilder& net, Value* x, const std::string& name, int64_t out, int64_t stride, int64_t group_width) {
  const int64_t in = NetBuilder::channels(x), squeezed = std::lround(0.25 * static_cast<double>(in));
  Value* shortcut = x;
  if (in != out || stride != 1)
    shortcut = net.batch_norm(net.conv(x, name + ".proj.0", {.out = out, .stride = stride}), name + ".proj.1");
  Value* y = conv_norm_activation(net, x, torchvision_names(name + ".f.a"), {.out = out});
  y = conv_norm_activation(net, y, torchvision_names(name + ".f.b"),
                           {.out = out, .kernel = 3, .stride = stride, .groups = out / group_width});
  y = squeeze_excite(net, y, name + ".f.se", squeezed);
  y = net.batch_norm(net.conv(y, name + ".f.c.0", {.out = out}), name + ".f.c.1",
                     net.options().zero_init_residual ? 0 : 1);
  return net.relu(net.add(shortcut, y, name + ".add"), name + ".activation");
}

}  // namespace

Levels regnet_features(NetBuilder& net) {
  const Stages all = stages(net.options().arch);
  Levels levels;
  net.begin_block(0);
  Value* x = conv_norm_activation(net, net.input(), torchvision_names("stem"), {.out = 32, .kernel = 3, .stride = 2});
  add_level(levels, x, 2);
  for (size_t stage = 0; stage < 4; ++stage) {
    net.begin_block(static_cast<int64_t>(stage) + 1);
    for (int64_t i = 0; i < all.depth[stage]; ++i)
      x = block(net, x, str("trunk_output.block", stage + 1, ".block", stage + 1, "-", i), all.width[stage],
                i == 0 ? 2 : 1, all.group_width);
    add_level(levels, x, int64_t{4} << stage);
  }
  return levels;
}

Value* regnet_classifier(NetBuilder& net, Value* x) {
  x = net.dropout(net.flatten(net.global_average(x, "avgpool"), "flatten"), "dropout", 0);
  return net.classes(x, "fc", {.deviation = 0.01});
}

}  // namespace octet::models
