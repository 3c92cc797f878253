#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

struct Inception {
  const char* name;
  int64_t narrow, reduce3, wide3, reduce5, wide5, pooled;
  int64_t pool_behind;  // kernel of torchvision's; 0: none
};

LayerNames names_of(const NetBuilder& net, const std::string& torchvision, const std::string& tao) {
  if (net.tao()) return tao_names(tao);
  return {torchvision + ".conv", torchvision + ".bn", torchvision + ".relu"};
}

Value* inception(NetBuilder& net, Value* x, const Inception& spec) {
  const std::string ours = str("inception", spec.name), theirs = str("inception_", spec.name);
  const auto layer = [&](Value* in, const char* branch, const char* tao, int64_t out, int64_t kernel) {
    return conv_norm_activation(net, in, names_of(net, ours + branch, theirs + tao),
                                {.out = out, .kernel = kernel, .bias = net.tao()});
  };
  Value* a = layer(x, ".branch1", "_1x1", spec.narrow, 1);
  Value* b = layer(layer(x, ".branch2.0", "_3x3_reduce", spec.reduce3, 1), ".branch2.1", "_3x3", spec.wide3, 3);
  Value* c = layer(x, ".branch3.0", "_5x5_reduce", spec.reduce5, 1);
  c = layer(c, ".branch3.1", "_5x5", spec.wide5, net.tao() ? 5 : 3);
  Value* d = net.max_pool(x, net.tao() ? theirs + "_pool" : ours + ".branch4.0", {.kernel = 3, .stride = 1, .pad = 1});
  d = layer(d, ".branch4.1", "_pool_proj", spec.pooled, 1);
  return net.concat({a, b, c, d}, net.tao() ? theirs + "_output" : ours + ".concat");
}

}  // namespace

Levels googlenet_features(NetBuilder& net) {
  static constexpr Inception kInceptions[] = {
      {"3a", 64, 96, 128, 16, 32, 32, 0},     {"3b", 128, 128, 192, 32, 96, 64, 3},
      {"4a", 192, 96, 208, 16, 48, 64, 0},    {"4b", 160, 112, 224, 24, 64, 64, 0},
      {"4c", 128, 128, 256, 24, 64, 64, 0},   {"4d", 112, 144, 288, 32, 64, 64, 0},
      {"4e", 256, 160, 320, 32, 128, 128, 2}, {"5a", 256, 160, 320, 32, 128, 128, 0},
      {"5b", 384, 192, 384, 48, 128, 128, 0}};
  require_pixels(net, 32);
  const bool tao = net.tao();
  int64_t total = 2, pools = 0;
  Levels levels;
  const auto pool = [&](Value* x, int64_t kernel) {
    const std::string name = str(tao ? "pool" : "maxpool", ++pools);
    total *= 2;
    return net.max_pool(x, name, tao ? PoolSpec{} : PoolSpec{.kernel = kernel, .ceil = true});
  };
  const auto layer = [&](Value* x, const char* ours, const char* theirs, const ConvSpec& spec) {
    const LayerNames names =
        tao ? LayerNames{theirs, str("bn_", theirs), str(theirs, "_relu")} : names_of(net, ours, "");
    x = conv_norm_activation(net, x, names, spec);
    add_level(levels, x, total);
    return x;
  };
  net.begin_block(0);
  Value* x = layer(net.input(), "conv1", "conv1", {.out = 64, .kernel = 7, .stride = 2, .bias = tao});
  x = layer(pool(x, 3), "conv2", "conv2_reduce", {.out = 64, .bias = tao});
  x = pool(layer(x, "conv3", "conv2", {.out = 192, .kernel = 3, .bias = tao}), 3);
  int64_t block = 0;
  for (const Inception& each : kInceptions) {
    net.begin_block(++block);
    x = inception(net, x, each);
    add_level(levels, x, total);
    const bool before_last_stage = each.pool_behind == 2;
    if (each.pool_behind > 0 && !(before_last_stage && tao && net.backbone())) x = pool(x, each.pool_behind);
  }
  return levels;
}

Value* googlenet_classifier(NetBuilder& net, Value* x) {
  const bool tao = net.tao();
  x = net.flatten(net.global_average(x, tao ? "avg_pool" : "avgpool"), "flatten");
  x = net.dropout(x, "dropout", tao ? 0.4 : 0.2);
  return net.classes(x, tao ? "output_fc" : "fc", {});
}

}  // namespace octet::models
