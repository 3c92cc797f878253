// ShuffleNetV2 (Ma et al. 2018) with torchvision's names.
#include <array>

#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

constexpr int kRepeats[] = {4, 8, 4};

// Of the stem, the three stages, and the last convolution.
std::array<int64_t, 5> widths(const NetBuilder& net) {
  return net.options().arch == "shufflenet_v2_x0_5" ? std::array<int64_t, 5>{24, 48, 96, 192, 1024}
                                                    : std::array<int64_t, 5>{24, 116, 232, 464, 1024};
}

// Channel c of group g of two becomes channel 2 c + g.
Value* shuffled(NetBuilder& net, Value* x, const std::string& name) {
  const ir::Shape& shape = *x->type.shape;
  Value* groups = net.reshape(x, name + ".groups", {0, 2, shape[1] / 2, shape[2] * shape[3]});
  return net.reshape(net.transpose(groups, name + ".turned", {0, 2, 1, 3}), name, {0, shape[1], shape[2], shape[3]});
}

Value* normalized(NetBuilder& net, Value* x, const std::string& name, int conv, const ConvSpec& spec) {
  return net.batch_norm(net.conv(x, str(name, ".", conv), spec), str(name, ".", conv + 1));
}

Value* block(NetBuilder& net, Value* x, const std::string& name, int64_t out, int64_t stride) {
  const int64_t half = out / 2, in = NetBuilder::channels(x);
  const std::string one = name + ".branch1", two = name + ".branch2";
  Value *left = x, *right = x;
  if (stride == 1) {
    const std::vector<Value*> halves = net.split(x, name + ".halves", {half, half});
    left = halves[0], right = halves[1];
  } else {
    left = normalized(net, x, one, 0, {.out = in, .kernel = 3, .stride = stride, .groups = in});
    left = net.relu(normalized(net, left, one, 2, {.out = half}), one + ".4");
  }
  right = net.relu(normalized(net, right, two, 0, {.out = half}), two + ".2");
  right = normalized(net, right, two, 3, {.out = half, .kernel = 3, .stride = stride, .groups = half});
  right = net.relu(normalized(net, right, two, 5, {.out = half}), two + ".7");
  return shuffled(net, net.concat({left, right}, name + ".joined"), name + ".shuffle");
}

}  // namespace

Levels shufflenet_features(NetBuilder& net) {
  const std::array<int64_t, 5> width = widths(net);
  Levels levels;
  net.begin_block(0);
  Value* x =
      conv_norm_activation(net, net.input(), torchvision_names("conv1"), {.out = width[0], .kernel = 3, .stride = 2});
  add_level(levels, x, 2);
  x = net.max_pool(x, "maxpool", {.kernel = 3, .stride = 2, .pad = 1});
  add_level(levels, x, 4);
  int64_t total = 4;
  for (size_t stage = 0; stage < 3; ++stage) {
    net.begin_block(static_cast<int64_t>(stage) + 1);
    for (int i = 0; i < kRepeats[stage]; ++i)
      x = block(net, x, str("stage", stage + 2, ".", i), width[stage + 1], i == 0 ? 2 : 1);
    add_level(levels, x, total *= 2);
  }
  net.begin_block(4);
  x = conv_norm_activation(net, x, torchvision_names("conv5"), {.out = width[4]});
  add_level(levels, x, total);
  return levels;
}

Value* shufflenet_classifier(NetBuilder& net, Value* x) {
  return net.classes(net.dropout(net.flatten(net.global_average(x, "avgpool"), "flatten"), "dropout", 0), "fc", {});
}

}  // namespace octet::models
