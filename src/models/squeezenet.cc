#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

// Squeezed by a 1x1 convolution, then expanded by 1x1 and 3x3 ones side by side. `name`: torchvision's
// "features.3.", TAO's "fire2_".
Value* fire(NetBuilder& net, Value* x, const std::string& name, int64_t squeeze, int64_t expand) {
  const auto layer = [&](Value* in, const char* ours, const char* conv, const char* relu, int64_t out, int64_t kernel) {
    const LayerNames names = net.tao() ? LayerNames{name + conv, name + conv + "_bn", name + relu}
                                       : LayerNames{name + ours, name + ours + "_norm", name + ours + "_activation"};
    return conv_norm_activation(net, in, names, {.out = out, .kernel = kernel, .bias = true});
  };
  Value* s = layer(x, "squeeze", "squeeze_conv", "squeeze", squeeze, 1);
  Value* narrow = layer(s, "expand1x1", "expand_conv1x1", "expand_1x1", expand, 1);
  Value* wide = layer(s, "expand3x3", "expand_conv3x3", "expand_3x3", expand, 3);
  return net.concat({narrow, wide}, name + "concat");
}

}  // namespace

Levels squeezenet_features(NetBuilder& net) {
  struct Fire {
    int64_t squeeze, expand;
    bool pool_behind;
  };
  static constexpr Fire kFires[] = {{16, 64, false},  {16, 64, false},  {32, 128, true}, {32, 128, false},
                                    {48, 192, false}, {48, 192, false}, {64, 256, true}, {64, 256, false}};
  const bool tao = net.tao();
  const PoolSpec pool = tao ? PoolSpec{.kernel = 3, .stride = 2, .pad = 1} : PoolSpec{.kernel = 3, .ceil = true};
  const auto padding = tao || net.backbone() ? ConvSpec::Padding::kSame : ConvSpec::Padding::kNone;
  require_pixels(net, 32);
  Levels levels;
  net.begin_block(0);
  const LayerNames stem = tao ? tao_names("conv1") : LayerNames{"features.0", "features.0_norm", "features.1"};
  Value* x = conv_norm_activation(net, net.input(), stem,
                                  {.out = 96, .kernel = 7, .stride = 2, .bias = true, .padding = padding});
  levels.push_back({x, 2});
  int index = 2;  // torchvision counts every layer
  int64_t number = 1, total = 2;
  x = net.max_pool(x, tao ? "pool1" : str("features.", index), pool);
  add_level(levels, x, total *= 2);
  for (const Fire& f : kFires) {
    net.begin_block(number++);  // TAO's fire2 is block 1
    x = fire(net, x, tao ? str("fire", number, "_") : str("features.", ++index, "."), f.squeeze, f.expand);
    add_level(levels, x, total);
    if (!f.pool_behind) continue;
    x = net.max_pool(x, tao ? str("pool", number) : str("features.", ++index), pool);
    add_level(levels, x, total *= 2);
  }
  return levels;
}

Value* squeezenet_classifier(NetBuilder& net, Value* x) {
  const bool tao = net.tao();
  x = net.dropout(x, tao ? "fire9_dropout" : "classifier.0", tao ? 1e-3 : 0.5);
  x = net.conv(x, tao ? "conv10" : "classifier.1", {.out = net.options().num_classes, .bias = true, .deviation = 0.01});
  x = net.relu(x, tao ? "conv10_relu" : "classifier.2");
  return net.flatten(net.global_average(x, tao ? "pool10" : "classifier.3"), "flatten", "logits");
}

}  // namespace octet::models
