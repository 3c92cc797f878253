#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

struct Layer {
  std::string name;
  ConvSpec conv;
};

// The modules of torchvision, which count as the paper's figures 5, 6 and 7 (A, C, E) and the two that halve (B, D).
class Inception {
 public:
  explicit Inception(NetBuilder& net) : net_(net) {}

  // Where the published network does not pad.
  ConvSpec::Padding no_padding() const { return net_.backbone() ? ConvSpec::Padding::kSame : ConvSpec::Padding::kNone; }
  Value* halving_pool(Value* x, const std::string& name) {
    return net_.max_pool(x, name, {.kernel = 3, .stride = 2, .pad = net_.backbone() ? 1 : 0});
  }
  Value* layers(Value* x, const std::vector<Layer>& layers) {
    for (const auto& [name, conv] : layers)
      x = conv_norm_activation(net_, x, {name + ".conv", name + ".bn", name + ".relu"}, conv);
    return x;
  }

  Value* a(Value* x, const std::string& name, int64_t pooled) {
    const std::string b = name + ".branch", wide = b + "5x5_", twice = b + "3x3dbl_";
    return net_.concat({layers(x, {{b + "1x1", {.out = 64}}}),
                        layers(x, {{wide + "1", {.out = 48}}, {wide + "2", {.out = 64, .kernel = 5}}}),
                        layers(x, {{twice + "1", {.out = 64}},
                                   {twice + "2", {.out = 96, .kernel = 3}},
                                   {twice + "3", {.out = 96, .kernel = 3}}}),
                        pool_branch(x, name, pooled)},
                       name + ".concat");
  }

  Value* b(Value* x, const std::string& name) {
    const std::string b = name + ".branch", twice = b + "3x3dbl_";
    return net_.concat(
        {layers(x, {{b + "3x3", halving(384)}}),
         layers(x, {{twice + "1", {.out = 64}}, {twice + "2", {.out = 96, .kernel = 3}}, {twice + "3", halving(96)}}),
         halving_pool(x, b + "_pool")},
        name + ".concat");
  }

  Value* c(Value* x, const std::string& name, int64_t narrow) {
    const std::string b = name + ".branch", once = b + "7x7_", twice = b + "7x7dbl_";
    return net_.concat({layers(x, {{b + "1x1", {.out = 192}}}),
                        layers(x, {{once + "1", {.out = narrow}},
                                   {once + "2", {.out = narrow, .kernel = 1, .width = 7}},
                                   {once + "3", {.out = 192, .kernel = 7, .width = 1}}}),
                        layers(x, {{twice + "1", {.out = narrow}},
                                   {twice + "2", {.out = narrow, .kernel = 7, .width = 1}},
                                   {twice + "3", {.out = narrow, .kernel = 1, .width = 7}},
                                   {twice + "4", {.out = narrow, .kernel = 7, .width = 1}},
                                   {twice + "5", {.out = 192, .kernel = 1, .width = 7}}}),
                        pool_branch(x, name, 192)},
                       name + ".concat");
  }

  Value* d(Value* x, const std::string& name) {
    const std::string b = name + ".branch", once = b + "3x3_", wide = b + "7x7x3_";
    return net_.concat({layers(x, {{once + "1", {.out = 192}}, {once + "2", halving(320)}}),
                        layers(x, {{wide + "1", {.out = 192}},
                                   {wide + "2", {.out = 192, .kernel = 1, .width = 7}},
                                   {wide + "3", {.out = 192, .kernel = 7, .width = 1}},
                                   {wide + "4", halving(192)}}),
                        halving_pool(x, b + "_pool")},
                       name + ".concat");
  }

  // torchvision concatenates its halves first, which is the same.
  Value* e(Value* x, const std::string& name) {
    const std::string b = name + ".branch", once = b + "3x3_", twice = b + "3x3dbl_";
    const auto wide = [&](Value* y, const std::string& layer) {
      return layers(y, {{layer, {.out = 384, .kernel = 1, .width = 3}}});
    };
    const auto high = [&](Value* y, const std::string& layer) {
      return layers(y, {{layer, {.out = 384, .kernel = 3, .width = 1}}});
    };
    Value* narrow = layers(x, {{b + "1x1", {.out = 320}}});
    Value* shallow = layers(x, {{once + "1", {.out = 384}}});
    Value *once_a = wide(shallow, once + "2a"), *once_b = high(shallow, once + "2b");
    Value* deep = layers(x, {{twice + "1", {.out = 448}}, {twice + "2", {.out = 384, .kernel = 3}}});
    Value *twice_a = wide(deep, twice + "3a"), *twice_b = high(deep, twice + "3b");
    return net_.concat({narrow, once_a, once_b, twice_a, twice_b, pool_branch(x, name, 192)}, name + ".concat");
  }

 private:
  ConvSpec halving(int64_t out) const { return {.out = out, .kernel = 3, .stride = 2, .padding = no_padding()}; }

  Value* pool_branch(Value* x, const std::string& name, int64_t out) {
    x = net_.average_pool(x, name + ".pool", {.kernel = 3, .stride = 1, .pad = 1});
    return layers(x, {{name + ".branch_pool", {.out = out}}});
  }

  NetBuilder& net_;
};

}  // namespace

Levels inception_features(NetBuilder& net) {
  require_pixels(net, net.backbone() ? 32 : 75);
  Inception of(net);
  const ConvSpec::Padding none = of.no_padding();
  Levels levels;
  int64_t number = 0;
  const auto next = [&] { net.begin_block(++number); };
  net.begin_block(number);
  Value* x = of.layers(net.input(), {{"Conv2d_1a_3x3", {.out = 32, .kernel = 3, .stride = 2, .padding = none}},
                                     {"Conv2d_2a_3x3", {.out = 32, .kernel = 3, .padding = none}},
                                     {"Conv2d_2b_3x3", {.out = 64, .kernel = 3}}});
  add_level(levels, x, 2);
  x = of.layers(of.halving_pool(x, "maxpool1"),
                {{"Conv2d_3b_1x1", {.out = 80}}, {"Conv2d_4a_3x3", {.out = 192, .kernel = 3, .padding = none}}});
  add_level(levels, x, 4);
  x = of.halving_pool(x, "maxpool2");
  for (const auto& [name, pooled] : {std::pair("Mixed_5b", 32), {"Mixed_5c", 64}, {"Mixed_5d", 64}}) {
    next();
    x = of.a(x, name, pooled);
  }
  add_level(levels, x, 8);
  next();
  x = of.b(x, "Mixed_6a");
  for (const auto& [name, narrow] :
       {std::pair("Mixed_6b", 128), {"Mixed_6c", 160}, {"Mixed_6d", 160}, {"Mixed_6e", 192}}) {
    next();
    x = of.c(x, name, narrow);
  }
  add_level(levels, x, 16);
  next();
  x = of.d(x, "Mixed_7a");
  for (const char* name : {"Mixed_7b", "Mixed_7c"}) {
    next();
    x = of.e(x, name);
  }
  add_level(levels, x, 32);
  return levels;
}

Value* inception_classifier(NetBuilder& net, Value* x) {
  x = net.flatten(net.global_average(x, "avgpool"), "flatten");
  return net.classes(net.dropout(x, "dropout", 0.5), "fc", {});
}

}  // namespace octet::models
