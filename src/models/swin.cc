// Swin-Tiny (Liu et al. 2021) with torchvision's names. Images are [batch, height, width, channels] inside; the tokens
// of all windows, and of all images, are the rows of one matrix for the linear layers. Stochastic depth, a
// training-time regularizer without an ONNX form, is not in the graph.
#include <cmath>

#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;
using Ints = std::vector<int64_t>;

constexpr int64_t kWidth = 96, kHeadWidth = 32, kWindow = 7, kTokens = kWindow * kWindow;
constexpr int kBlocks[] = {2, 2, 6, 2};
constexpr float kEpsilon = 1e-5f;
constexpr double kDeviation = 0.02;
constexpr float kMasked = -100;  // of tokens that were neighbors only by the shift

int64_t size(const Value* x, size_t axis) {
  return x->type.shape->at(axis);
}

// What windows need of an image: borders that make it a multiple of them, and how far they are shifted.
struct Windows {
  int64_t height, width;  // with the borders
  int64_t down, right;    // shifts

  int64_t rows() const { return height / kWindow; }
  int64_t columns() const { return width / kWindow; }
};

Windows windows_of(const Value* x, bool shifted) {
  const auto whole = [](int64_t n) { return (n + kWindow - 1) / kWindow * kWindow; };
  Windows w{whole(size(x, 1)), whole(size(x, 2)), 0, 0};
  if (shifted) w.down = w.height > kWindow ? kWindow / 2 : 0, w.right = w.width > kWindow ? kWindow / 2 : 0;
  return w;
}

// The first `count` rows or columns become the last.
Value* rolled(NetBuilder& net, Value* x, const std::string& name, int64_t axis, int64_t count) {
  const int64_t n = size(x, static_cast<size_t>(axis));
  if (count == 0 || count == n) return x;
  return net.concat({net.slice(x, name + ".rest", count, n, axis), net.slice(x, name + ".first", 0, count, axis)}, name,
                    axis);
}

// [windows, tokens, tokens]: kMasked where two tokens of a window come from different sides of the image.
std::vector<float> shift_mask(const Windows& w) {
  const auto region = [](int64_t at, int64_t n, int64_t shift) {
    return shift == 0 || at < n - kWindow ? 0 : at < n - shift ? 1 : 2;
  };
  std::vector<float> mask;
  for (int64_t window = 0; window < w.rows() * w.columns(); ++window) {
    const auto of = [&](int64_t token) {
      const int64_t y = window / w.columns() * kWindow + token / kWindow,
                    x = window % w.columns() * kWindow + token % kWindow;
      return 3 * region(y, w.height, w.down) + region(x, w.width, w.right);
    };
    for (int64_t i = 0; i < kTokens; ++i)
      for (int64_t j = 0; j < kTokens; ++j) mask.push_back(of(i) == of(j) ? 0 : kMasked);
  }
  return mask;
}

// One number for each head and pair of tokens, [1, heads, tokens, tokens], of the table of their distances: row
// (y_i - y_j + 6) * 13 + x_i - x_j + 6.
Value* relative_bias(NetBuilder& net, const std::string& name, int64_t heads) {
  constexpr int64_t kDistances = 2 * kWindow - 1;
  Value* table = net.embedding(name + ".relative_position_bias_table", {kDistances * kDistances, heads}, kDeviation);
  const std::string bias = name + ".bias";
  Value* x = net.reshape(table, bias + ".table", {kDistances, kDistances, heads});
  // For each place j, from the last distance on, those of all i: [y_j, y_i] and behind it [x_j, x_i].
  for (int64_t axis = 0; axis < 2; ++axis) {
    std::vector<Value*> parts;
    for (int64_t j = 0; j < kWindow; ++j)
      parts.push_back(net.slice(x, str(bias, ".", axis, ".", j), kWindow - 1 - j, 2 * kWindow - 1 - j, axis));
    x = net.concat(parts, str(bias, ".", axis), axis);
  }
  x = net.reshape(x, bias + ".places", {kWindow, kWindow, kWindow, kWindow, heads});  // y_j, y_i, x_j, x_i
  x = net.transpose(x, bias + ".pairs", {4, 1, 3, 0, 2});
  return net.reshape(x, bias, {1, heads, kTokens, kTokens});
}

// Within each window of rows [windows of all images * tokens, channels].
Value* attention(NetBuilder& net, Value* rows, const std::string& name, const Windows& w) {
  const int64_t channels = NetBuilder::channels(rows), heads = channels / kHeadWidth, count = w.rows() * w.columns();
  const LinearInit init{.deviation = kDeviation};
  const std::vector<Value*> qkv =
      net.split(net.linear(rows, name + ".qkv", 3 * channels, init), name + ".split", {channels, channels, channels});
  const auto of_heads = [&](Value* v, const char* part, const Ints& order) {
    v = net.reshape(v, str(name, ".", part, ".heads"), {-1, kTokens, heads, kHeadWidth});
    return net.transpose(v, str(name, ".", part), order);
  };
  Value* query =
      net.scaled(of_heads(qkv[0], "q", {0, 2, 1, 3}), name + ".scale", 1 / std::sqrt(static_cast<float>(kHeadWidth)));
  Value* x = net.matmul(query, of_heads(qkv[1], "k", {0, 2, 3, 1}), name + ".scores");
  x = net.add(x, relative_bias(net, name, heads), name + ".biased");
  if (w.down + w.right > 0) {
    x = net.reshape(x, name + ".windows", {-1, count, heads, kTokens, kTokens});
    x = net.add(x, net.fixed(name + ".mask", {1, count, 1, kTokens, kTokens}, shift_mask(w)), name + ".masked");
    x = net.reshape(x, name + ".all", {-1, heads, kTokens, kTokens});
  }
  x = net.matmul(net.softmax(x, name + ".softmax"), of_heads(qkv[2], "v", {0, 2, 1, 3}), name + ".mix");
  x = net.reshape(net.transpose(x, name + ".join", {0, 2, 1, 3}), name + ".rows", {-1, channels});
  return net.linear(x, name + ".proj", channels, init);
}

Value* window_attention(NetBuilder& net, Value* x, const std::string& name, bool shifted) {
  const int64_t height = size(x, 1), width = size(x, 2), channels = size(x, 3);
  const Windows w = windows_of(x, shifted);
  x = net.pad_end(x, name + ".pad", {0, w.height - height, w.width - width, 0});
  x = rolled(net, rolled(net, x, name + ".up", 1, w.down), name + ".left", 2, w.right);
  x = net.reshape(x, name + ".grid", {-1, w.rows(), kWindow, w.columns(), kWindow, channels});
  x = net.reshape(net.transpose(x, name + ".partition", {0, 1, 3, 2, 4, 5}), name + ".tokens", {-1, channels});
  x = attention(net, x, name, w);
  x = net.reshape(x, name + ".parts", {-1, w.rows(), w.columns(), kWindow, kWindow, channels});
  x = net.reshape(net.transpose(x, name + ".join_windows", {0, 1, 3, 2, 4, 5}), name + ".image",
                  {-1, w.height, w.width, channels});
  x = rolled(net, rolled(net, x, name + ".down", 1, w.height - w.down), name + ".right", 2, w.width - w.right);
  if (w.height > height) x = net.slice(x, name + ".crop_height", 0, height, 1);
  if (w.width > width) x = net.slice(x, name + ".crop_width", 0, width, 2);
  return x;
}

Value* block(NetBuilder& net, Value* x, const std::string& name, bool shifted) {
  const int64_t height = size(x, 1), width = size(x, 2), channels = size(x, 3);
  const LinearInit init{.deviation = kDeviation};
  Value* y = window_attention(net, net.layer_norm(x, name + ".norm1", kEpsilon), name + ".attn", shifted);
  x = net.add(x, y, name + ".add1");
  y = net.reshape(net.layer_norm(x, name + ".norm2", kEpsilon), name + ".mlp.rows", {-1, channels});
  y = net.activation(net.linear(y, name + ".mlp.0", 4 * channels, init), name + ".mlp.1", Activation::kGelu);
  y = net.reshape(net.linear(y, name + ".mlp.3", channels, init), name + ".mlp.image", {-1, height, width, channels});
  return net.add(x, y, name + ".add2");
}

// Squares of two by two pixels become one of twice the channels.
Value* merged(NetBuilder& net, Value* x, const std::string& name) {
  x = net.pad_end(x, name + ".pad", {0, size(x, 1) % 2, size(x, 2) % 2, 0});
  const int64_t height = size(x, 1) / 2, width = size(x, 2) / 2, channels = size(x, 3);
  x = net.reshape(x, name + ".grid", {-1, height, 2, width, 2, channels});
  // The upper left, the lower left, the upper right, the lower right pixel.
  x = net.reshape(net.transpose(x, name + ".squares", {0, 1, 3, 4, 2, 5}), name + ".rows", {-1, 4 * channels});
  x = net.linear(net.layer_norm(x, name + ".norm", kEpsilon), name + ".reduction", 2 * channels,
                 {.deviation = kDeviation, .bias = false});
  return net.reshape(x, name + ".image", {-1, height, width, 2 * channels});
}

}  // namespace

Levels swin_features(NetBuilder& net) {
  require_pixels(net, 4);
  Levels levels;
  const auto level = [&](Value* x, int64_t stride, const std::string& name) {
    add_level(levels, net.transpose(x, name, {0, 3, 1, 2}), stride);
  };
  net.begin_block(0);
  Value* x = net.conv(net.input(), "features.0.0",
                      {.out = kWidth,
                       .kernel = 4,
                       .stride = 4,
                       .bias = true,
                       .padding = ConvSpec::Padding::kNone,
                       .deviation = kDeviation});
  x = net.layer_norm(net.transpose(x, "features.0.1", {0, 2, 3, 1}), "features.0.2", kEpsilon);
  for (int stage = 0; stage < 4; ++stage) {
    net.begin_block(stage + 1);
    if (stage > 0) x = merged(net, x, str("features.", 2 * stage));
    for (int i = 0; i < kBlocks[stage]; ++i) x = block(net, x, str("features.", 2 * stage + 1, ".", i), i % 2 == 1);
    if (net.backbone() && stage < 3) level(x, int64_t{4} << stage, str("level", stage));
  }
  level(net.layer_norm(x, "norm", kEpsilon), 32, "permute");
  return levels;
}

Value* swin_classifier(NetBuilder& net, Value* x) {
  x = net.dropout(net.flatten(net.global_average(x, "avgpool"), "flatten"), "dropout", 0);
  return net.classes(x, "head", {.deviation = kDeviation});
}

}  // namespace octet::models
