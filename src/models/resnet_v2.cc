// Pre-activation ResNets (He et al. 2016) as Keras has them: a stage strides in its last block, whose shortcut is a max
// pool of one pixel.
#include <string_view>

#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

Value* norm_relu(NetBuilder& net, Value* x, const std::string& name) {
  return net.relu(net.batch_norm(x, name + "_bn"), name + "_relu");
}

struct BlockSpec {
  int64_t planes;
  int64_t stride = 1;
  bool first = false;  // of its stage
};

// `active`: its input normalized.
Value* block(NetBuilder& net, Value* x, Value* active, const std::string& name, const BlockSpec& spec) {
  const int64_t out = 4 * spec.planes;
  Value* shortcut = x;
  if (spec.first || net.options().all_projections)
    shortcut = net.conv(active, name + "_0_conv", {.out = out, .stride = spec.stride, .bias = true});
  else if (spec.stride > 1)
    shortcut = net.max_pool(x, name + "_0_pool", {.kernel = 1, .stride = spec.stride});
  Value* y = norm_relu(net, net.conv(active, name + "_1_conv", {.out = spec.planes}), name + "_1");
  y = net.conv(y, name + "_2_conv", {.out = spec.planes, .kernel = 3, .stride = spec.stride});
  ConvSpec last = {.out = out, .bias = true};
  if (net.options().zero_init_residual) last.deviation = 0;
  y = net.conv(norm_relu(net, y, name + "_2"), name + "_3_conv", last);
  return net.add(shortcut, y, name + "_out");
}

}  // namespace

Levels resnet_v2_features(NetBuilder& net) {
  struct Depth {
    std::string_view arch;
    int blocks[4];
  };
  static constexpr Depth kDepths[] = {{"resnet50_v2", {3, 4, 6, 3}}, {"resnet101_v2", {3, 4, 23, 3}}};
  const Depth* depth = nullptr;
  for (const Depth& d : kDepths)
    if (net.options().arch == d.arch) depth = &d;
  OCTET_CHECK(depth != nullptr, net.options().arch);
  Levels levels;
  net.begin_block(0);
  Value* x = net.conv(net.input(), "conv1_conv", {.out = 64, .kernel = 7, .stride = 2, .bias = true});
  // Not the pool's own pads: nothing has made the features positive, and Keras's border is 0.
  x = net.max_pool(net.pad_border(x, "pool1_pad", 1), "pool1_pool", {.kernel = 3, .stride = 2});
  int64_t total = 4;
  for (int i = 0; i < 4; ++i) {
    net.begin_block(i + 1);
    for (int j = 1; j <= depth->blocks[i]; ++j) {
      const std::string name = str("conv", i + 2, "_block", j);
      const bool strides = j == depth->blocks[i] && i < 3;
      Value* active = norm_relu(net, x, name + "_preact");
      if (strides) add_level(levels, active, total);
      x = block(net, x, active, name, {.planes = int64_t{64} << i, .stride = strides ? 2 : 1, .first = j == 1});
      if (strides) total *= 2;
    }
  }
  add_level(levels, norm_relu(net, x, "post"), total);
  return levels;
}

Value* resnet_v2_classifier(NetBuilder& net, Value* x) {
  x = net.dropout(net.flatten(net.global_average(x, "avg_pool"), "flatten"), "dropout", 0);
  return net.classes(x, "predictions", {});
}

}  // namespace octet::models
