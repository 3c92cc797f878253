#include <algorithm>
#include <cmath>
#include <string_view>

#include "models/net_builder.h"
#include "models/networks.h"

namespace octet::models {
namespace {

using ir::Value;

struct StageSpec {
  int64_t expansion, kernel, stride, out;
  int repeats;
};

// Of B0: channels are multiplied by the width, blocks of a stage by the depth.
struct Scaling {
  std::string_view arch;
  double width, depth, dropout;
};

const Scaling& scaling_of(const NetBuilder& net) {
  static constexpr Scaling kScalings[] = {{"efficientnet_b0", 1, 1, 0.2}, {"efficientnet_b3", 1.2, 1.4, 0.3}};
  for (const Scaling& s : kScalings)
    if (net.options().arch == s.arch) return s;
  OCTET_CHECK(false, net.options().arch);
}

using Padding = ConvSpec::Padding;

Value* layer(NetBuilder& net, Value* x, const LayerNames& names, ConvSpec spec) {
  if (net.tao()) spec.padding = Padding::kTensorFlow;
  return conv_norm_activation(net, x, names, spec, Activation::kSilu);
}

Value* squeeze_excite(NetBuilder& net, Value* x, const std::string& ours, const std::string& theirs, int64_t squeezed) {
  const auto name = [&](const char* torchvision, const char* tao) {
    return net.tao() ? theirs + tao : ours + torchvision;
  };
  Value* s = net.global_average(x, name(".avgpool", "se_squeeze"));
  s = net.conv(s, name(".fc1", "se_reduce"), {.out = squeezed, .bias = true});
  s = net.activation(s, name(".activation", "se_reduce_activation"), Activation::kSilu);
  s = net.conv(s, name(".fc2", "se_expand"), {.out = NetBuilder::channels(x), .bias = true});
  return net.multiply(x, net.sigmoid(s, name(".scale_activation", "se_gate")), name(".scale", "se_excite"));
}

// Names: torchvision's "features.1.0", TAO's "block1a_".
Value* mb_conv(NetBuilder& net, Value* x, const std::string& ours, const std::string& theirs, const StageSpec& spec,
               int64_t stride) {
  const int64_t in = NetBuilder::channels(x), hidden = in * spec.expansion;
  int part = 0;
  const auto next = [&] { return str(ours, ".block.", part++); };
  const auto names = [&](const char* conv, const char* norm, const char* activation) {
    return net.tao() ? LayerNames{theirs + conv, theirs + norm, theirs + activation} : torchvision_names(next());
  };
  Value* y = x;
  if (spec.expansion != 1) y = layer(net, y, names("expand_conv", "expand_bn", "expand_activation"), {.out = hidden});
  y = layer(net, y, names("dwconv", "bn", "activation"),
            {.out = hidden, .kernel = spec.kernel, .stride = stride, .groups = hidden});
  y = squeeze_excite(net, y, net.tao() ? "" : next(), theirs, std::max<int64_t>(1, in / 4));
  const LayerNames project = names("project_conv", "project_bn", "");
  const bool residual = stride == 1 && in == spec.out;
  y = net.batch_norm(net.conv(y, project.conv, {.out = spec.out}), project.norm,
                     residual && net.options().zero_init_residual ? 0 : 1);
  return residual ? net.add(y, x, net.tao() ? theirs + "add" : ours + ".add") : y;
}

}  // namespace

Levels efficientnet_features(NetBuilder& net) {
  static constexpr StageSpec kStages[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                                          {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
  const auto ends = [&](const std::string& ours, const std::string& theirs) {
    return net.tao() ? LayerNames{theirs + "_conv", theirs + "_bn", theirs + "_activation"} : torchvision_names(ours);
  };
  const Scaling& scaling = scaling_of(net);
  const auto channels = [&](int64_t of_b0) { return rounded_channels(static_cast<double>(of_b0) * scaling.width); };
  Levels levels;
  int64_t total = 2;
  net.begin_block(0);
  Value* x = layer(net, net.input(), ends("features.0", "stem"), {.out = channels(32), .kernel = 3, .stride = 2});
  int index = 1;
  for (StageSpec spec : kStages) {
    spec.out = channels(spec.out);
    const int repeats = static_cast<int>(std::ceil(spec.repeats * scaling.depth));
    net.begin_block(index);
    for (int i = 0; i < repeats; ++i)
      x = mb_conv(net, x, str("features.", index, ".", i), str("block", index, static_cast<char>('a' + i), "_"), spec,
                  i == 0 ? spec.stride : 1);
    ++index;
    add_level(levels, x, total *= spec.stride);
  }
  net.begin_block(index);
  add_level(levels, layer(net, x, ends(str("features.", index), "top"), {.out = 4 * NetBuilder::channels(x)}), total);
  return levels;
}

Value* efficientnet_classifier(NetBuilder& net, Value* x) {
  const bool tao = net.tao();
  x = net.flatten(net.global_average(x, tao ? "avg_pool" : "avgpool"), "flatten");
  x = net.dropout(x, tao ? "top_dropout" : "classifier.0", scaling_of(net).dropout);
  return net.classes(x, tao ? "predictions" : "classifier.1",
                     {.uniform_bound = 1 / std::sqrt(static_cast<double>(net.options().num_classes))});
}

}  // namespace octet::models
