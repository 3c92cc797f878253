// Vision transformers with timm's names. The rows of all images' tokens are one matrix, so that every linear layer is
// an ordinary matrix product, which quantizes as a convolution does.
#include <cmath>

#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

constexpr int64_t kHeadWidth = 64, kBlocks = 12, kExpansion = 4;
constexpr double kDeviation = 0.02;  // of linear layers and the position embedding

int64_t model_width(const NetBuilder& net) {
  return net.options().arch == "vit_small" ? 384 : 192;
}

// Published is 16, for 224x224; small images keep some 50 to 200 tokens.
int64_t patch_side(const NetBuilder& net) {
  const int64_t side = std::min(net.options().input[1], net.options().input[2]);
  return side >= 128 ? 16 : side >= 64 ? 8 : 4;
}

Value* block(NetBuilder& net, Value* rows, const std::string& name, int64_t tokens) {
  const LinearInit init{.deviation = kDeviation};
  const int64_t all = NetBuilder::channels(rows), count = all / kHeadWidth;
  Value* x = net.layer_norm(rows, name + ".norm1");
  const std::vector<Value*> qkv =
      net.split(net.linear(x, name + ".attn.qkv", 3 * all, init), name + ".attn.split", {all, all, all});
  const auto heads = [&](Value* v, const char* part, const std::vector<int64_t>& order) {
    v = net.reshape(v, name + ".attn." + part + ".heads", {-1, tokens, count, kHeadWidth});
    return net.transpose(v, name + ".attn." + part, order);
  };
  Value* query =
      net.scaled(heads(qkv[0], "q", {0, 2, 1, 3}), name + ".attn.scale", 1 / std::sqrt(static_cast<float>(kHeadWidth)));
  Value* scores = net.matmul(query, heads(qkv[1], "k", {0, 2, 3, 1}), name + ".attn.scores");
  x = net.matmul(net.softmax(scores, name + ".attn.softmax"), heads(qkv[2], "v", {0, 2, 1, 3}), name + ".attn.mix");
  x = net.reshape(net.transpose(x, name + ".attn.join", {0, 2, 1, 3}), name + ".attn.rows", {-1, all});
  rows = net.add(rows, net.linear(x, name + ".attn.proj", all, init), name + ".add1");
  x = net.linear(net.layer_norm(rows, name + ".norm2"), name + ".mlp.fc1", kExpansion * all, init);
  x = net.linear(net.activation(x, name + ".mlp.act", Activation::kGelu), name + ".mlp.fc2", all, init);
  return net.add(rows, x, name + ".add2");
}

}  // namespace

Levels vit_features(NetBuilder& net) {
  const auto& [channels, height, width] = net.options().input;
  const int64_t side = patch_side(net), down = height / side, across = width / side, tokens = down * across + 1;
  if (height % side != 0 || width % side != 0 || height < side || width < side)
    fail_usage(net.options().arch, " cuts images into squares of ", side, " pixels; ", height, "x", width,
               " is no multiple of that");
  const int64_t features = model_width(net);
  net.begin_block(0);
  Value* x = net.conv(net.input(), "patch_embed.proj",
                      {.out = features,
                       .kernel = side,
                       .stride = side,
                       .bias = true,
                       .padding = ConvSpec::Padding::kNone,
                       .deviation = 1 / std::sqrt(static_cast<double>(channels * side * side))});
  x = net.reshape(x, "patch_embed.flatten", {0, features, down * across});
  x = net.transpose(x, "patch_embed.tokens", {0, 2, 1});
  // The class token stands in a row of zeros: it is row 0 of the position embedding, of which timm has it apart.
  x = net.pad_front(x, "cls_token", 1);
  x = net.add(x, net.embedding("pos_embed", {1, tokens, features}, kDeviation), "pos_add");
  x = net.reshape(x, "tokens", {-1, features});
  for (int64_t i = 0; i < kBlocks; ++i) {
    net.begin_block(i + 1);
    x = block(net, x, str("blocks.", i), tokens);
  }
  if (!net.backbone())
    return {{net.slice(net.reshape(x, "joined", {-1, tokens * features}), "pool", 0, features), side}};
  x = net.layer_norm(x, "norm");
  x = net.slice(net.reshape(x, "norm.tokens", {-1, tokens, features}), "norm.patches", 1, tokens);
  x = net.transpose(x, "norm.channels", {0, 2, 1});
  return {{net.reshape(x, "norm.image", {0, features, down, across}), side}};
}

Value* vit_classifier(NetBuilder& net, Value* x) {
  return net.classes(net.dropout(net.layer_norm(x, "norm"), "head_drop", 0), "head", {.deviation = kDeviation});
}

}  // namespace octet::models
